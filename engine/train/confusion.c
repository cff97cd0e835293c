/* confusion: counts the rows of each class by the class that the model predicts, in each evaluation. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/channel/events.h"
#include "engine/train/train_int.h"

#define SUMMED_ONCE 4096

struct dt_confusion {
    int64_t classes, cells;
    int64_t *counts; /* (replicas, classes, classes): of the evaluation in progress */
    double *sums;    /* (classes, classes): of all ranks */
};

dt_status dt_confusion_open(dt_train_session *session, dt_error *err)
{
    int64_t classes = dt_model_classes(session->model);
    struct dt_confusion *c;

    if (classes == 0)
        return DT_OK;
    if (classes > DT_CONFUSION_CLASSES) {
        if (session->mesh.world.rank == 0)
            dt_log_info("the confusion of %lld classes is not counted: the limit is %d",
                        (long long)classes, DT_CONFUSION_CLASSES);
        return DT_OK;
    }
    session->evaluation.confusion = c = calloc(1, sizeof(*c));
    if (c == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the counts of classes");
    c->classes = classes;
    c->cells = classes * classes;
    c->counts = calloc((size_t)(session->replicas * c->cells), sizeof(*c->counts));
    c->sums = calloc((size_t)c->cells, sizeof(*c->sums));
    if (c->counts == NULL || c->sums == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the counts of %lld classes",
                       (long long)classes);
    return DT_OK;
}

void dt_confusion_close(struct dt_confusion *c)
{
    if (c == NULL)
        return;
    free(c->counts);
    free(c->sums);
    free(c);
}

void dt_confusion_begin(dt_train_session *session)
{
    struct dt_confusion *c = session->evaluation.confusion;

    if (c == NULL)
        return;
    memset(c->counts, 0, (size_t)(session->replicas * c->cells) * sizeof(*c->counts));
    session->batch.counts_of_classes = c->counts;
}

/* Counts are integers far below 2^53, so that their sums as doubles are exact. */
dt_status dt_confusion_end(dt_train_session *session, dt_error *err)
{
    struct dt_confusion *c = session->evaluation.confusion;
    dt_status st = DT_OK;

    session->batch.counts_of_classes = NULL;
    if (c == NULL)
        return DT_OK;
    for (int64_t i = 0; i < c->cells; i++) {
        c->sums[i] = 0;
        for (int64_t r = 0; r < session->replicas; r++)
            c->sums[i] += (double)c->counts[r * c->cells + i];
        c->sums[i] = dt_mesh_term(&session->mesh, DT_MESH_DATA, c->sums[i]);
    }
    for (int64_t i = 0; i < c->cells; i += SUMMED_ONCE)
        DT_TRY(session->comm.all_reduce_f64(&session->comm, c->sums + i,
                                            c->cells - i < SUMMED_ONCE ? c->cells - i : SUMMED_ONCE,
                                            err));
out:
    return st;
}

json_t *dt_confusion_to_json(const struct dt_confusion *c)
{
    json_t *rows = json_array(), *row = NULL;

    for (int64_t i = 0; i < c->cells; i++) {
        if (i % c->classes == 0) {
            row = json_array();
            json_array_append_new(rows, row);
        }
        json_array_append_new(row, json_integer((json_int_t)c->sums[i]));
    }
    return rows;
}
