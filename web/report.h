/* report: the page of a run, or of a comparison, as one file: styles, scripts, and what the API would answer, so
 * that charts zoom and switch as on the served page. It loads nothing and asks nobody.
 */
#ifndef DT_WEB_REPORT_H
#define DT_WEB_REPORT_H

#include "base/strbuf.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_WEB_REPORT_RUNS_MOST 8 /* as many as the page compares */

typedef struct dt_web_report {
    dt_store *store;
    const char *folder;      /* of the store: runs/ID/ lies below it */
    const char *const *runs; /* ids; of one run its page, of several their comparison */
    size_t count;
    int64_t now_ms;
} dt_web_report;

dt_status dt_web_report_add(dt_strbuf *out, const dt_web_report *report, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
