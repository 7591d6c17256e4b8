/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C and SIGTERM ask long work to stop at the next whole transaction; a second one kills. */
#ifndef SH_BASE_INTERRUPT_H
#define SH_BASE_INTERRUPT_H

void sh_interrupt_install(void);
int sh_interrupted(void);           /* the signal's number, or 0 */

#endif
