/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/tried_policies.h"

#include <stddef.h>

const char *const tried_policies[] = {
    "full", "window", "streaming", "random", "knorm", "h2o", "h2o:score=mean,recent=3", "h2o:score=decay", "observed",
    "vatp", "tova", "roco:recent=3,sinks=2", "scissorhands:recent=4,window=20",
    "scissorhands:recent=4,window=20,threshold=i,drop=1", "scissorhands:recent=2,window=9,threshold=t,drop=1",
    "scissorhands:recent=4,window=8,counter=epochs,threshold=i,drop=1", "scissorhands:drop=1,threshold=i,counts=rate",
    "scissorhands-released:first_layer=0,window=20,recent=4", "reservoir:recent=3", "reservoir:threshold=i,recent=2",
    "keyformer", "snapkv:recent=6", "snapkv:recent=4,kernel=1", "expected:every=8", "keydiff", "lagkv:lag=4,sinks=2",
    "caote", "caote:base=tova,centre=mean", "r-kv:recent=4", "oracle", NULL};
