/* SPDX-License-Identifier: Apache-2.0 */
/* The losses that evictions in a layer cause: as losses of perplexity, where they are known and where not. */
#ifndef SH_APP_PLAN_LAYER_LOSSES_H
#define SH_APP_PLAN_LAYER_LOSSES_H

/* loss [n_layer][n] >= 0: divergences of the output, nats, of each layer at n budgets; change [n_layer][n]: of the nll,
 * nats; both are means over `tokens` tokens, and NAN where nothing was measured. Each divergence in loss is multiplied
 * by the layer's ratio of change to divergence.
 *
 * That ratio is about 1, but far from it if the model predicts some texts badly with the full cache: evictions then
 * change much and can even help. The change is too noisy to be taken point by point: its variance over T tokens is
 * about 2 kl / T. So a layer has one ratio, from the sums over its n measured points, with a prior of standard
 * deviation 0.25 (ratios of the same kind vary so much between texts and policies) about that of all layers, which is
 * kept within 0.5 to 1.2:
 *
 *     prior = 2 n / (T 0.25^2);  ratio = (sum(change) + usual prior) / (sum(kl) + prior), within 0.1 to 2 */
void sh_layer_losses_aim(double *loss, const double *change, int n_layer, int n, double tokens);

/* Fills the NAN of loss [n_layer][n] at the ascending budgets point [n]; at least one value of each layer is known.
 * Between known values and after the last one: as the allocator `loss` reads a curve (sh_loss_at). Before the first
 * one: as the inverse square of the budget, steeper than measured curves are, so that no layer gets such budgets as
 * long as others can give tokens. */
void sh_layer_losses_fill(double *loss, const int *point, int n_layer, int n, int n_token);

/* Which values of a layer, loss [n] at the budgets point [n], to measure next so that the curve is known from the
 * budget low to high, and at one point below. Those that are NAN between known ones go to `to` [n]; of those below and
 * above all known ones the next one each. Returns how many; 0 if nothing is known. */
int sh_layer_losses_wanted(const double *loss, const int *point, int n, double low, double high, int *to);

#endif
