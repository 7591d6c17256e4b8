/* SPDX-License-Identifier: Apache-2.0 */
/* Models of text and pictures or sound whose text part is of a family in this folder, which text_config names. What
 * looks and listens is left out: the text part alone computes the same of a text without pictures. Compared with
 * transformers 5.24 by tests/oracle/wrappers.py. Models that change the text part are not in the list, such as
 * PaliGemma (a prompt sees all of itself) and Llama 3.2 Vision (layers that attend to the picture), nor is Aya Vision,
 * whose factor of the logits transformers leaves out. */
#include "src/model/families/families.h"

const char *const sh_wrappers[] = {
    "DeepseekVLForConditionalGeneration", "DeepseekVLHybridForConditionalGeneration",
    "Exaone4_5_ForConditionalGeneration", "Glm46VForConditionalGeneration", "Glm4vForConditionalGeneration",
    "Glm4vMoeForConditionalGeneration", "GotOcr2ForConditionalGeneration", "GraniteSpeechForConditionalGeneration",
    "HyperCLOVAXVisionV2ForConditionalGeneration", "Idefics2ForConditionalGeneration",
    "Idefics3ForConditionalGeneration", "InternVLForConditionalGeneration", "JanusForConditionalGeneration",
    "Kimi_K25ForConditionalGeneration", "KimiK25ForConditionalGeneration", "Lfm2VlForConditionalGeneration",
    "Lfm3VlForConditionalGeneration", "LightOnOcrForConditionalGeneration", "LlavaForConditionalGeneration",
    "LlavaNextForConditionalGeneration", "LlavaNextVideoForConditionalGeneration",
    "LlavaOnevisionForConditionalGeneration", "MiniCPMOcrForConditionalGeneration",
    "MiniCPMV4_6ForConditionalGeneration", "MiniCPMV4_7ForConditionalGeneration", "Mistral3ForConditionalGeneration",
    "Ovis2ForConditionalGeneration", "QianfanOCRForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration",
    "Qwen2AudioForConditionalGeneration", "Qwen2VLForConditionalGeneration", "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration", "SmolVLMForConditionalGeneration", "VideoLlama3ForConditionalGeneration",
    "VideoLlavaForConditionalGeneration", "VipLlavaForConditionalGeneration", "VoxtralForConditionalGeneration", NULL};

const struct sh_wrapped_sizes sh_wrapped_sizes[] = {
    {"llama", 32, 4096, 32, 0, 11008, 32000}, {"mistral", 32, 4096, 32, 8, 14336, 32000},
    {"qwen2", 32, 4096, 32, 32, 22016, 151936}, {NULL, 0, 0, 0, 0, 0, 0}};

/* The first is that of older files, whose head is language_model.lm_head. */
const char *const sh_wrapper_prefixes[] = {"language_model.model.", "model.language_model.", "model.text_model.",
                                           "model.", "", NULL};
