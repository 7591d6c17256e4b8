/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several commands take, each written once. */
#ifndef SH_CLI_OPTIONS_H
#define SH_CLI_OPTIONS_H

#include "src/cli/args.h"

#define SH_PART_OPT(field) {"shard", SH_OPT_TEXT, field, "I/N", "do only the I-th of N parts, into FILE.shard-I-of-N " \
    "beside --db\n(I with as many digits as N); shears merge joins them", 0, 0, 0}

#define SH_CLUSTER_OPT(field) {"rank-timeout", SH_OPT_REAL, field, "S", "under mpirun or srun: a rank that makes " \
    "no progress for so\nlong is lost, and others do its unit (default: 600)", 0.1, 1e6, 0}

#define SH_TIMING_OPT(field) {"timing", SH_OPT_FLAG, field, NULL, "tell how long each stage took: products, " \
    "attention, softmax and\npacking, copy, statistics, compression, writer, tokens, eviction", 0, 0, 0}

#endif
