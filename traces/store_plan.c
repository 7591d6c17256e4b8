/* SPDX-License-Identifier: Apache-2.0 */
/* See store_plan.h. */
#include "traces/store_plan.h"

#include "traces/db.h"

int sh_store_keep_plan(struct sh_store *s, int run, const char *name, const char *json, struct sh_err *e)
{
    static const char doing[] = "storing the plan";
    if (sh_db_exec(s, "BEGIN IMMEDIATE", doing, e))
        return -1;
    int bad = sh_db_once(s, sh_db_query(s, e, "DELETE FROM plan WHERE name = ?2 AND"
                                        " model = (SELECT model FROM run WHERE id = ?1)", "it", run, name), doing, e) ||
              sh_db_once(s, sh_db_query(s, e, "INSERT INTO plan (model, name, json)"
                                        " SELECT model, ?2, ?3 FROM run WHERE id = ?1", "itt", run, name, json),
                         doing, e) ||
              sh_db_exec(s, "COMMIT", doing, e);
    if (bad)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return bad ? -1 : 0;
}
