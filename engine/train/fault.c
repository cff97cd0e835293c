#include "engine/train/session.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"

static const char *const names[] = {"kill", "hang", "slow", "full", "flip"};

static bool read_one(dt_fault *out, const char *text)
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
        out->kind = (dt_fault_kind)i;
        if (strcmp(name, names[i]) == 0)
            return (out->kind == DT_FAULT_SLOW) == (got == 4) && (got == 3 || out->times >= 1);
    }
    return false;
}

dt_status dt_faults_read(dt_faults *out, const char *text, int64_t rank, dt_error *err)
{
    *out = (dt_faults){0};
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ";");
        dt_fault fault = {0};
        char one[64];

        snprintf(one, sizeof(one), "%.*s", (int)length, text);
        if (length >= sizeof(one) || !read_one(&fault, one))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "DTRUN_FAULT: '%s' is not a fault (expected for example 'kill 1@3')",
                           one);
        if (fault.rank == rank && out->count < DT_FAULTS_MAX)
            out->items[out->count++] = fault;
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

static void act(const dt_fault *fault, double seconds)
{
    switch (fault->kind) {
    case DT_FAULT_KILL:
        raise(SIGKILL);
        break;
    case DT_FAULT_HANG:
        raise(SIGSTOP);
        break;
    case DT_FAULT_SLOW:
        dt_clock_sleep_seconds(seconds * (fault->times - 1));
        break;
    case DT_FAULT_FULL:
        fill_disk();
        break;
    case DT_FAULT_FLIP:
        break;
    }
}

bool dt_faults_step(const dt_faults *faults, int64_t step, double seconds)
{
    bool flips = false;

    for (int i = 0; i < faults->count; i++) {
        const dt_fault *fault = &faults->items[i];
        bool begins = fault->step == step;

        if (begins)
            dt_log_warn("injected by DTRUN_FAULT: '%s' after step %lld", names[fault->kind],
                        (long long)step);
        if (begins || (fault->kind == DT_FAULT_SLOW && step > fault->step))
            act(fault, seconds);
        flips = flips || (begins && fault->kind == DT_FAULT_FLIP);
    }
    return flips;
}
