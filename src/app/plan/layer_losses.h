/* SPDX-License-Identifier: Apache-2.0 */
/* The loss that evictions in a layer cause, for a target of perplexity. */
#ifndef SH_APP_PLAN_LAYER_LOSSES_H
#define SH_APP_PLAN_LAYER_LOSSES_H

/* loss [n_layer][n] >= 0: divergences of the output, nats, of each layer at n budgets; change [n_layer][n]: of the nll,
 * nats; both are means over `tokens` tokens. Each divergence in loss is multiplied by the layer's ratio of change to
 * divergence.
 *
 * That ratio is about 1, but far from it if the model predicts some texts badly with the full cache: evictions then
 * change much and can even help. The change is too noisy to be taken point by point: its variance over T tokens is
 * about 2 kl / T. So a layer has one ratio, from the sums over its points, with a prior of standard deviation 0.25
 * (ratios of the same kind vary so much between texts and policies) about that of all layers, which is kept within 0.5
 * to 1.2:
 *
 *     prior = 2 n / (T 0.25^2);  ratio = (sum(change) + usual prior) / (sum(kl) + prior), within 0.1 to 2 */
void sh_layer_losses_aim(double *loss, const double *change, int n_layer, int n, double tokens);

#endif
