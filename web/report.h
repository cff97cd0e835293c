/* report: writes the page of a run, or of a comparison, as one HTML file: with styles, scripts and the answers of the
 * API, so that charts zoom and switch as on the served page. The file needs no network.
 */
#ifndef DT_WEB_REPORT_H
#define DT_WEB_REPORT_H

#include "base/strbuf.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_WEB_REPORT_RUNS_MOST 20 /* the page compares no more */

typedef struct dt_web_report {
    dt_store *store;
    const char *folder;      /* of the store: runs/ID/ is in it */
    const char *const *runs; /* ids; one gives the page of the run, several their comparison */
    size_t count;
    int64_t now_ms;
} dt_web_report;

dt_status dt_web_report_add(dt_strbuf *out, const dt_web_report *report, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
