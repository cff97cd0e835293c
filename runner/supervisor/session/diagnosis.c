#include "runner/supervisor/session/diagnosis.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static const json_t *where_of(const json_t *diagnosis)
{
    return json_object_get(diagnosis, "where");
}

/* Returns how likely the rank is the cause of a hang. 0: it waits for other ranks. */
static int suspicion(const json_t *diagnosis)
{
    const char *state = text_of(diagnosis, "state");

    if (state[0] == 'T' || state[0] == 't')
        return 4;
    if (state[0] == 'D')
        return 3;
    if (!json_is_object(where_of(diagnosis)))
        return 2; /* even its event thread is silent */
    if (!json_is_string(json_object_get(where_of(diagnosis), "collective")))
        return 1;
    return 0;
}

static void say_rank(dt_strbuf *out, const dt_hang_diagnosis *all, int64_t rank,
                     const json_t *diagnosis)
{
    const dt_watchdog_rank *seen = &all->watchdog->ranks[rank];
    const json_t *where = where_of(diagnosis);

    dt_strbuf_add_fmt(out, "rank %lld on %s ", (long long)rank, all->host_of(all->context, rank));
    if (suspicion(diagnosis) >= 3) {
        dt_strbuf_add_fmt(out, "is in state %s (%s", text_of(diagnosis, "state"),
                          text_of(diagnosis, "state_words"));
        if (text_of(diagnosis, "wchan")[0] != '\0')
            dt_strbuf_add_fmt(out, ", in the kernel's %s", text_of(diagnosis, "wchan"));
        dt_strbuf_add_char(out, ')');
    } else if (suspicion(diagnosis) == 2) {
        dt_strbuf_add_str(out, "does not answer");
    } else if (suspicion(diagnosis) == 1) {
        dt_strbuf_add_fmt(out, "is in phase '%s' of step %lld", text_of(where, "phase"),
                          (long long)json_integer_value(json_object_get(where, "step")));
    } else {
        dt_strbuf_add_fmt(out, "waits in %s", text_of(where, "collective"));
    }
    if (seen->condition == DT_WATCHDOG_RUNS)
        dt_strbuf_add_fmt(out, " and used %.0f s of processor time without advancing",
                          seen->busy_seconds);
}

/* Returns the rank whose program is most likely what the others wait for; -1 if none was described. */
static int64_t find_program(const dt_hang_diagnosis *all, int64_t besides)
{
    int64_t found = -1, most = -1;

    for (int64_t i = 0; i < all->watchdog->rank_count; i++) {
        const json_t *program =
            json_object_get(json_array_get(all->diagnoses, (size_t)i), "program");
        int64_t suspicion = json_integer_value(json_object_get(program, "suspicion"));

        if (!json_is_object(program) || i == besides || suspicion <= most)
            continue;
        found = i;
        most = suspicion;
    }
    return found;
}

static void say_program(dt_strbuf *out, const dt_hang_diagnosis *all, int64_t rank)
{
    const json_t *program =
        json_object_get(json_array_get(all->diagnoses, (size_t)rank), "program");
    double quiet = json_number_value(json_object_get(program, "quiet_seconds"));

    dt_strbuf_add_fmt(out, "rank %lld on %s %s", (long long)rank, all->host_of(all->context, rank),
                      text_of(program, "words"));
    if (text_of(program, "wchan")[0] != '\0')
        dt_strbuf_add_fmt(out, " in the kernel's %s", text_of(program, "wchan"));
    if (quiet >= 1)
        dt_strbuf_add_fmt(out, ", for %.0f s without processor time and output", quiet);
}

/* Returns false if the ranks run no programs. */
static bool say_programs(dt_strbuf *out, const dt_hang_diagnosis *all)
{
    int64_t worst = find_program(all, -1), other = find_program(all, worst);

    if (worst < 0)
        return false;
    dt_strbuf_add_str(out, ": ");
    say_program(out, all, worst);
    if (other >= 0) {
        dt_strbuf_add_str(out, ", while ");
        say_program(out, all, other);
    }
    return true;
}

/* Only `hung` is known to compute without end; the other causes show in the diagnoses. */
void dt_hang_diagnosis_say(dt_strbuf *out, const dt_hang_diagnosis *all, int64_t hung)
{
    bool is_loop = all->watchdog->ranks[hung].condition == DT_WATCHDOG_RUNS;
    const json_t *worst = NULL, *waiting = NULL;
    int64_t loops = is_loop ? hung : -1, worst_rank = -1, waiting_rank = -1, alike = 0;

    if (say_programs(out, all))
        return;

    for (int64_t i = 0; i < all->watchdog->rank_count; i++) {
        const json_t *diagnosis = json_array_get(all->diagnoses, (size_t)i);

        if (!json_is_object(diagnosis))
            continue;
        if (worst == NULL || i == loops ||
            (worst_rank != loops && suspicion(diagnosis) > suspicion(worst))) {
            worst = diagnosis;
            worst_rank = i;
            alike = 0;
        }
        alike += suspicion(diagnosis) == suspicion(worst) ? 1 : 0;
        if (suspicion(diagnosis) == 0 && waiting == NULL) {
            waiting = diagnosis;
            waiting_rank = i;
        }
    }
    if (worst == NULL)
        return;
    dt_strbuf_add_str(out, ": ");
    say_rank(out, all, worst_rank, worst);
    if (alike > 1)
        dt_strbuf_add_fmt(out, ", and %lld other rank%s too", (long long)alike - 1,
                          alike > 2 ? "s" : "");
    if (waiting != NULL && waiting != worst) {
        dt_strbuf_add_str(out, ", while ");
        say_rank(out, all, waiting_rank, waiting);
    }
}
