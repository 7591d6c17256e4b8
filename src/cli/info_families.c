/* SPDX-License-Identifier: Apache-2.0 */
/* See info.h. */
#include "src/cli/info.h"

#include <stdio.h>
#include <string.h>

#include "src/model/families/families.h"

enum { WORDS = 256 };

static const char *join(const char *const *list, char to[WORDS])
{
    to[0] = '\0';
    for (; list && *list; list++) {
        size_t used = strlen(to);
        snprintf(to + used, WORDS - used, "%s%s", used ? " " : "", *list);
    }
    return to;
}

int sh_info_families(const struct sh_common *common, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "families", "model families");
    for (const struct sh_family *const *f = sh_families; *f; f++) {
        char types[WORDS], counted[WORDS];
        const struct sh_arch *a = &(*f)->start;
        int mixes = 0, latent = 0;
        for (const struct sh_param *p = (*f)->params; p && p->name; p++) {
            mixes |= p->role == SH_ROUTER_W;
            latent |= p->role == SH_KV_A_W;
        }
        sh_out_item(o);
        sh_out_text(o, "family", "family", (*f)->name);
        sh_out_bool(o, "runs", "runs", (*f)->params != NULL);
        sh_out_text(o, "model_types", "model types", join((*f)->model_types, types));
        sh_out_detail(o);
        sh_out_text(o, "counted_types", "counted only", join((*f)->counted_types, counted));
        sh_out_detail(o);
        sh_out_bool(o, "experts", "experts", mixes);
        sh_out_detail(o);
        sh_out_bool(o, "latent", "latent", latent);
        sh_out_detail(o);
        sh_out_bool(o, "sinks", "sinks", (a->flags & SH_HAS_SINKS) != 0);
        sh_out_detail(o);
        sh_out_text(o, "gguf", "GGUF", (*f)->gguf ? (*f)->gguf->arch : "");
        sh_out_text(o, "formats", "formats", !(*f)->params ? "" : (*f)->gguf ? "hub coded GGUF" : "hub coded");
        sh_out_detail(o);
        sh_out_text(o, "special", "features", (*f)->special);
    }
    sh_out_end(o);
    sh_out_note(o, "runs: trace, eval and generate accept checkpoints of the family; capacity accepts all families.\n"
                   "GGUF: the name of the architecture in GGUF files, if these can be read.\n"
                   "--columns, --json and --csv have further columns: model_types; counted_types (accepted only by\n"
                   "capacity); experts, latent and sinks; formats (hub: safetensors or PyTorch's files; coded: the\n"
                   "same with matrices in FP8, compressed-tensors, AWQ, GPTQ, NF4, FP4, MXFP4 or NVFP4; GGUF).\n"
                   "Text parts of these families also run inside models of text and pictures or sound, such as\n"
                   "LLaVA, InternVL and Mistral Small 3; doc/commands.md lists them.");
    return sh_common_write(common, o, 0, e);
}
