/* SPDX-License-Identifier: Apache-2.0 */
/* See interrupt.h. */
#include "src/base/interrupt.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t caught;

static void handler(int number)
{
    caught = number;
}

void sh_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART | (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);           /* a limit on file sizes is an error of the write */
}

int sh_interrupted(void)
{
    return (int)caught;
}
