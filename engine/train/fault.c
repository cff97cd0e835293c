/* fault: injects faults after steps of this rank. train.c only calls session->after_step.
 *
 * DTRUN_FAULT  "kill 1@3", "hang 0@5", "slow 1@2x4", "full 0@6", "flip 1@7", separated by ';': FAULT RANK@STEP,
 *              the fault happens to that rank after that step
 *                kill  the process gets SIGKILL
 *                hang  the process gets SIGSTOP
 *                slow  every later step takes the given number of times as long
 *                full  files can no longer grow, as on a full disk, for the rest of the process
 *                flip  one bit of the rank's parameters is inverted
 * Only the first attempt of a run has faults, so that a test sees the recovery. The variable is documented
 * only with smoke, so that nobody sets it by accident.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/train/train_int.h"

enum { FAULTS_MAX = 16 };

typedef enum fault_kind { KILL, HANG, SLOW, FULL, FLIP } fault_kind;

typedef struct fault {
    fault_kind kind;
    int64_t rank, step;
    double times; /* factor of the step time, for a slow fault */
} fault;

typedef struct fault_list {
    fault items[FAULTS_MAX];
    int count; /* number of faults of this rank */
} fault_list;

#define FLIPPED_BIT (1u << 16)

static const char *const names[] = {"kill", "hang", "slow", "full", "flip"};

static bool read_one(fault *out, const char *text)
{
    long long rank, step;
    char name[8], end;
    int got = sscanf(text, "%7[a-z] %lld@%lldx%lf%c", name, &rank, &step, &out->times, &end);

    if (got == 3)
        got = sscanf(text, "%7[a-z] %lld@%lld%c", name, &rank, &step, &end);
    else if (got != 4)
        return false;
    if (got > 4 || (got == 4 && strcmp(name, "slow") != 0) || step < 0)
        return false;
    out->rank = rank;
    out->step = step;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        out->kind = (fault_kind)i;
        if (strcmp(name, names[i]) == 0)
            return (out->kind == SLOW) == (got == 4) && (got == 3 || out->times >= 1);
    }
    return false;
}

/* Parse `text` and keep the faults of `rank`. DT_ERR_USAGE if it is malformed. */
static dt_status read_faults(fault_list *out, const char *text, int64_t rank, dt_error *err)
{
    while (*text != '\0') {
        size_t length = strcspn(text, ";");
        fault next = {0};
        char one[64];

        snprintf(one, sizeof(one), "%.*s", (int)length, text);
        if (length >= sizeof(one) || !read_one(&next, one))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "DTRUN_FAULT: '%s' is not a fault (expected for example 'kill 1@3')",
                           one);
        if (next.rank == rank && out->count < FAULTS_MAX)
            out->items[out->count++] = next;
        text += length + (text[length] == ';' ? 1 : 0);
    }
    return DT_OK;
}

/* Simulate a full disk: existing files keep their size, and a write that would extend one fails
 * (with EFBIG instead of ENOSPC). */
static void fill_disk(void)
{
    const struct rlimit none = {0, 0};

    signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &none);
}

/* Flips a bit in the middle of the first unit. */
static dt_status flip_bit(dt_train_session *session, dt_error *err)
{
    dt_device *device = &session->device;
    dt_status st = DT_OK;
    int64_t elems;
    float *master;
    uint32_t bits;

    if (!dt_replicas_exist(session))
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "cannot flip a bit: no two ranks hold the same parameters");
    session->state.strategy->copy_of_unit(&session->state, 0, &master, &elems);
    DT_TRY(device->copy_out(device, &bits, master + elems / 2, sizeof(bits), err));
    bits ^= FLIPPED_BIT;
    DT_TRY(device->copy_in(device, master + elems / 2, &bits, sizeof(bits), err));
out:
    return st;
}

static dt_status inject(const fault *one, dt_train_session *session, double seconds, dt_error *err)
{
    switch (one->kind) {
    case KILL:
        raise(SIGKILL);
        break;
    case HANG:
        raise(SIGSTOP);
        break;
    case SLOW:
        dt_clock_sleep_seconds(seconds * (one->times - 1));
        break;
    case FULL:
        fill_disk();
        break;
    case FLIP:
        return flip_bit(session, err);
    }
    return DT_OK;
}

static dt_status after_step(dt_train_session *session, double seconds, dt_error *err)
{
    const fault_list *faults = session->after_step_state;
    dt_status st = DT_OK;

    for (int i = 0; i < faults->count; i++) {
        const fault *one = &faults->items[i];
        bool begins = one->step == session->step;

        if (begins)
            dt_log_warn("injected by DTRUN_FAULT: '%s' after step %lld", names[one->kind],
                        (long long)session->step);
        if (begins || (one->kind == SLOW && session->step > one->step))
            DT_TRY(inject(one, session, seconds, err));
    }
out:
    return st;
}

dt_status dt_faults_install(dt_train_session *session, dt_error *err)
{
    const char *text = getenv("DTRUN_FAULT");
    fault_list *parsed;
    dt_status st = DT_OK;

    if (text == NULL || session->plan->attempt > 1)
        return DT_OK;
    parsed = calloc(1, sizeof(*parsed));
    if (parsed == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for faults");
    DT_TRY(read_faults(parsed, text, session->mesh.world.rank, err));
    session->after_step = after_step;
    session->after_step_state = parsed;
    parsed = NULL;
out:
    free(parsed);
    return st;
}
