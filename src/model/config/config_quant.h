/* SPDX-License-Identifier: Apache-2.0 */
/* The quantization_config of a config.json: how the matrices of a checkpoint are stored (coded.h reads them). These
 * settings are checked against the tensors when the pieces are joined; the tensors themselves show which matrices are
 * not quantised. */
#ifndef SH_MODEL_CONFIG_QUANT_H
#define SH_MODEL_CONFIG_QUANT_H

#include "src/base/err.h"
#include "src/model/facts.h"
#include "src/model/families/family.h"

struct sh_config;

enum sh_quant_method {
    SH_QUANT_NONE,
    SH_QUANT_FP8,               /* "fp8", "fbgemm_fp8", modelopt's FP8: 8-bit floats               */
    SH_QUANT_GROUPS,            /* compressed-tensors                                             */
    SH_QUANT_AWQ, SH_QUANT_GPTQ,
    SH_QUANT_BNB,               /* bitsandbytes, 4 or 8 bits                                      */
    SH_QUANT_MXFP4,
    SH_QUANT_BITNET,            /* numbers -1, 0 and 1 in two bits                                 */
    SH_QUANT_MODELOPT           /* modelopt's NVFP4 and MXFP8, and its MIXED_PRECISION            */
};

enum sh_quant_span {            /* the numbers that share a scale                                 */
    SH_SPAN_TENSOR, SH_SPAN_CHANNEL, SH_SPAN_GROUP, SH_SPAN_BLOCK
};

struct sh_quant_scheme {        /* one way to store matrices                                      */
    int is_float, bits;
    enum sh_quant_span span;
    int group;                  /* GROUP: inputs of a row                                         */
    int block[2];               /* BLOCK: rows, columns                                           */
    int asymmetric;             /* there are zero points                                          */
    int ordered;                /* … and the group of each input is listed                        */
};

enum { SH_MOST_SCHEMES = 16 };

struct sh_quant {
    enum sh_quant_method method;
    int zero_less_one;          /* GPTQ: zero points are stored less 1                            */
    int varies;                 /* GPTQ: some matrices have bits and groups of their own          */
    int is_double;              /* bitsandbytes: the scales are coded, too                        */
    int divides;                /* BitNet: the scale divides                                      */
    struct sh_quant_scheme scheme[SH_MOST_SCHEMES];     /* [n]; GPTQ and AWQ have one             */
    int n;
};

/* Without a quantization_config: SH_QUANT_NONE. -1: an unknown method, a setting that cannot be read, or a value out of
 * range. */
int sh_config_quant(const struct sh_config *c, struct sh_quant *out, struct sh_err *e);

/* config_modules.c: the formats for capacity of a checkpoint with these schemes (planner/capacity/kv_type.h): one for
 * all matrices, or one each for experts, attention and the others, or one for each kind of matrix in each layer. All
 * other fields of `f` must be set. -1: a list of modules with names that the family's tables do not have. */
int sh_config_module_formats(const struct sh_config *c, const struct sh_family *family, const struct sh_arch *a,
                             const struct sh_quant *q, struct sh_kv_facts *f, struct sh_err *e);

/* The same from the quantization_config. */
int sh_config_quant_published(const struct sh_config *c, const struct sh_family *family, const struct sh_arch *a,
                              struct sh_kv_facts *f, struct sh_err *e);

#endif
