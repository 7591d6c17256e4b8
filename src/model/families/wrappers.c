/* SPDX-License-Identifier: Apache-2.0 */
/* Models of text and pictures or sound whose text part is of a family in this folder, which text_config names. The
 * parts for pictures and sound are left out: for a text without pictures, the text part alone computes the same.
 * tests/oracle/wrappers.py compares the results with transformers 5.24. Models that change the text part are not in the
 * list, such as PaliGemma: every token of a prompt sees the whole prompt, pictures or not. (transformers takes this
 * from the token types that PaliGemma's processor gives; without them its SDPA does the same, and its eager attention
 * is causal.) */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

const char *const sh_wrappers[] = {
    "AriaForConditionalGeneration", "AyaVisionForConditionalGeneration", "Cohere2VisionForConditionalGeneration",
    "CohereCompassForConditionalGeneration", "Cosmos3EdgeForConditionalGeneration",
    "DeepseekOcr2ForConditionalGeneration", "DeepseekVLForConditionalGeneration",
    "DeepseekVLHybridForConditionalGeneration", "Emu3ForConditionalGeneration",
    "Ernie4_5_VLMoeForConditionalGeneration", "Exaone4_5_ForConditionalGeneration", "Glm46VForConditionalGeneration",
    "Glm4vForConditionalGeneration", "Glm4vMoeForConditionalGeneration", "GlmAsrForConditionalGeneration",
    "GlmOcrForConditionalGeneration", "GotOcr2ForConditionalGeneration", "Granite4VisionForConditionalGeneration",
    "GraniteDoclingForConditionalGeneration", "GraniteSpeechForConditionalGeneration",
    "GraniteSpeechPlusForConditionalGeneration", "HunYuanVLForConditionalGeneration",
    "HyperCLOVAXVisionV2ForConditionalGeneration", "Idefics2ForConditionalGeneration",
    "Idefics3ForConditionalGeneration", "InternVLChatModel", "InternVLForConditionalGeneration",
    "JanusForConditionalGeneration", "KimiK25ForConditionalGeneration", "Kimi_K25ForConditionalGeneration",
    "Kosmos2ForConditionalGeneration", "Lfm2VlForConditionalGeneration", "Lfm3VlForConditionalGeneration",
    "LightOnOcrForConditionalGeneration", "LlavaForConditionalGeneration", "LlavaNextForConditionalGeneration",
    "LlavaNextVideoForConditionalGeneration", "LlavaOnevisionForConditionalGeneration",
    "MiniCPMOcrForConditionalGeneration", "MiniCPMV4_6ForConditionalGeneration",
    "MiniCPMV4_7ForConditionalGeneration", "Mistral3ForConditionalGeneration",
    "MistralLarge4ForConditionalGeneration", "MllamaForConditionalGeneration", "Molmo2ForConditionalGeneration",
    "MossTranscribeDiarizeForConditionalGeneration", "MuseGlimmerForConditionalGeneration",
    "Ovis2ForConditionalGeneration", "PaddleOCRVLForConditionalGeneration", "PerceptionLMForConditionalGeneration",
    "QianfanOCRForConditionalGeneration", "Qwen2AudioForConditionalGeneration", "Qwen2VLForConditionalGeneration",
    "Qwen2_5OmniForConditionalGeneration", "Qwen2_5OmniModel", "Qwen2_5OmniThinkerForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration", "Qwen3ASRForConditionalGeneration",
    "Qwen3OmniMoeForConditionalGeneration", "Qwen3OmniMoeThinkerForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration", "SmolVLMForConditionalGeneration", "UnlimitedOcrForConditionalGeneration",
    "VibeVoiceAsrForConditionalGeneration", "VideoLlama3ForConditionalGeneration", "VideoLlavaForConditionalGeneration",
    "VipLlavaForConditionalGeneration", "VoxtralForConditionalGeneration", NULL};

const struct sh_wrapped_part sh_wrapped_parts[] = {
    {"InternVLChatModel", NULL, "llm_config"}, {"Qwen2_5OmniModel", "thinker_config", "text_config"},
    {"Qwen2_5OmniForConditionalGeneration", "thinker_config", "text_config"},
    {"Qwen3OmniMoeForConditionalGeneration", "thinker_config", "text_config"}, {NULL, NULL, NULL}};

const struct sh_wrapped_sizes sh_wrapped_sizes[] = {
    {"cohere2", 40, 8192, 64, 0, 22528, 256000}, {"cohere_compass", 40, 8192, 64, 0, 22528, 256000},
    {"cosmos3_edge", 28, 2048, 16, 8, 9216, 131072}, {"deepseek_ocr2", 32, 4096, 32, 0, 11008, 102400},
    {"emu3", 32, 4096, 32, 8, 14336, 184622}, {"granite_docling", 28, 1024, 16, 4, 2048, 133800},
    {"hunyuan_vl", 32, 4096, 32, 0, 11008, 290943}, {"kosmos2", 24, 2048, 32, 0, 8192, 65037},
    {"llama", 32, 4096, 32, 0, 11008, 32000},
    {"mistral", 32, 4096, 32, 8, 14336, 32000}, {"mistral_large4", 72, 6144, 64, 64, 24576, 204800},
    {"molmo2", 36, 4096, 32, 8, 12288, 151936}, {"muse_glimmer", 52, 6656, 32, 2, 19968, 202048},
    {"qwen2", 32, 4096, 32, 32, 22016, 151936},
    {"unlimited_ocr", 12, 1280, 10, 10, 6848, 129280},
    {NULL, 0, 0, 0, 0, 0, 0}};

/* The first is that of older files, whose head is language_model.lm_head; those of Omni have thinker.lm_head, and those
 * of Emu3 and Kosmos-2 text_model.lm_head. */
const char *const sh_wrapper_prefixes[] = {"language_model.model.", "model.language_model.", "model.text_model.",
                                           "text_model.model.", "model.", "", "thinker.model.",
                                           "thinker.model.language_model.", NULL};

int sh_wrapper_head(struct sh_arch *a, const struct sh_config *c, int usual, struct sh_err *e)
{
    if (!sh_config_has_text(c))
        return 0;
    if (sh_config_outer_flag(c, "tie_word_embeddings", &usual, e))
        return -1;
    a->flags = usual ? a->flags | SH_TIED_HEAD : a->flags & ~(unsigned)SH_TIED_HEAD;
    return 0;
}
