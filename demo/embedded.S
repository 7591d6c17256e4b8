/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the files into the read-only data of the program; embed.c names them. */
#define FILE(name, path) \
	.global sh_demo_##name##_begin; .global sh_demo_##name##_end; \
	sh_demo_##name##_begin: .incbin path; \
	sh_demo_##name##_end: .byte 0;

	.section .rodata
	FILE(config, "demo/model/config.json")
	FILE(tokenizer, "demo/model/tokenizer.json")
	FILE(tokenizer_config, "demo/model/tokenizer_config.json")
	FILE(weights, "demo/model/model.safetensors")
	FILE(natural, "demo/text/natural.txt")
	FILE(recall, "demo/text/recall.jsonl")

	.section .note.GNU-stack,"",%progbits
