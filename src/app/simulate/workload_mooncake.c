/* SPDX-License-Identifier: Apache-2.0 */
/* The request traces that Mooncake publishes (github.com/kvcache-ai/Mooncake, FAST25-release/traces), a JSON object a
 * line (simulate_args.h). */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "src/app/simulate/simulate_args.h"
#include "src/base/mem.h"

static int tokens_of(const json_t *o, const char *key, uint32_t *out, struct sh_err *e)
{
    const json_t *v = json_object_get(o, key);
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < 0 || n > SH_REQUEST_TOKENS)
        return sh_fail(e, "%s: expected a whole number from 0 to %d", key, SH_REQUEST_TOKENS);
    *out = (uint32_t)n;
    return 0;
}

static int read_ids(const json_t *list, uint32_t prompt, struct sh_keys *ids, struct sh_err *e)
{
    size_t n = json_array_size(list), expected = (prompt + SH_MOONCAKE_PIECE - 1) / SH_MOONCAKE_PIECE;
    ids->n = 0;
    if (!list)
        return 0;
    if (!json_is_array(list) || n != expected)
        return sh_fail(e, "hash_ids: found %zu, expected %zu, one for each %d of the %u tokens of input_length", n,
                       expected, SH_MOONCAKE_PIECE, prompt);
    if (n > ids->room) {
        ids->room = (uint32_t)n;
        ids->at = xreallocarray(ids->at, n, sizeof *ids->at);
    }
    for (; ids->n < n; ids->n++) {
        const json_t *id = json_array_get(list, ids->n);
        if (!json_is_integer(id) || json_integer_value(id) < 0)
            return sh_fail(e, "hash_ids: number %u: expected a whole number from 0", ids->n + 1);
        ids->at[ids->n] = (uint64_t)json_integer_value(id);
    }
    return 0;
}

static int read_request(const json_t *o, struct sh_request *out, struct sh_keys *ids, struct sh_err *e)
{
    const json_t *time = json_object_get(o, "timestamp");
    struct sh_request r = {json_number_value(time) / 1000, 0, 0};
    if (!json_is_number(time) || !(r.arrival_s >= 0 && r.arrival_s <= 1e12))
        return sh_fail(e, "timestamp: expected milliseconds from 0");
    if (tokens_of(o, "input_length", &r.prompt, e) || tokens_of(o, "output_length", &r.output, e))
        return -1;
    if (r.prompt + r.output > SH_REQUEST_TOKENS)
        return sh_fail(e, "found a request of %u tokens, expected at most %d", r.prompt + r.output, SH_REQUEST_TOKENS);
    if (read_ids(json_object_get(o, "hash_ids"), r.prompt, ids, e))
        return -1;
    if (!r.prompt || !r.output)
        return 0;
    *out = r;
    return 1;
}

int sh_mooncake_row(const char *line, struct sh_request *out, struct sh_keys *ids, struct sh_err *e)
{
    json_error_t why;
    if (!line[strspn(line, " \t\r\n")])
        return 0;
    json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, &why);
    int got = json_is_object(o) ? read_request(o, out, ids, e)
              : o ? sh_fail(e, "expected a JSON object") : sh_fail(e, "not valid JSON: %s", why.text);
    json_decref(o);
    return got;
}
