/* change: changes runs for a page or a program that has the token to write (`dtrun serve --write`).
 *
 * POST /api/v1/runs/ID/WHAT with a JSON object. Each change is a command of this same program, so that its checks,
 * messages and traces in the history are those of the command:
 *
 *   name      {"name": TEXT}                          dtrun rename
 *   note      {"note": TEXT, "replaces": VERSION}     dtrun note --file -
 *   tags      {"add": [TAG], "remove": [TAG]}         dtrun tag
 *   archive   {"archived": BOOL}                      dtrun archive
 *   stop      {"now": BOOL}                           dtrun stop
 *   remove    {"dry_run": true} or {"name": NAME}     dtrun rm; NAME is that of the run, to confirm it
 *
 * A command runs on a thread of its own to its end, also if the client leaves. The answer waits for it for some seconds,
 * and is 202 with the number of the change if it still runs: GET /api/v1/changes/NUMBER has its result.
 * Threads    any
 */
#ifndef DT_WEB_CHANGE_H
#define DT_WEB_CHANGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

#define DT_WEB_CHANGE_WORDS 80
#define DT_WEB_TAGS_MOST    32 /* in one request */

/* A change as a command line. */
typedef struct dt_web_change {
    const char *what;
    const char *words[DT_WEB_CHANGE_WORDS + 1]; /* after the program; ends with NULL */
    int count;
    const char *input;   /* stdin; NULL: none */
    const char *confirm; /* the name that the run must have; NULL: any */
} dt_web_change;

/* Reads the body of a request into the arena. `run` is the id of a run. DT_ERR_USAGE: not such an object, with the
 * reason. */
dt_status dt_web_change_read(dt_web_change *out, const char *what, const char *run,
                             const char *body, size_t length, dt_arena *arena, dt_error *err);

#define DT_WEB_CHANGES_RUNNING 8
#define DT_WEB_CHANGES_KEPT    64

struct dt_web_job;

typedef struct dt_web_changes {
    const char *program; /* NULL: this server changes nothing */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct dt_web_job *jobs[DT_WEB_CHANGES_KEPT]; /* the newest ones */
    int64_t next;                                 /* number of the next change */
    int running;
    bool closing;
} dt_web_changes;

/* *out is set also on failure. */
dt_status dt_web_changes_begin(dt_web_changes **out, const char *program, dt_error *err);
/* Ends all waits for changes; NULL is accepted, also below. */
void dt_web_changes_end_waits(dt_web_changes *changes);
/* After all connections have ended; commands that still run continue. */
void dt_web_changes_end(dt_web_changes *changes);

#endif
