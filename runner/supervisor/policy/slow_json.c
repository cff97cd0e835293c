/* slow_json: readings from the messages of agents, and judgements as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runner/supervisor/policy/slow.h"

/* --- readings */

/* Indices of the engine's parts (engine/stopwatch.h). */
enum { HOST, ARITHMETIC, PRODUCTS, ATTENTION, BLOCKED, STOPWATCH_PARTS };

static double number_or(const json_t *object, const char *key, double fallback)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : fallback;
}

static double number_at(const json_t *array, size_t index)
{
    return json_number_value(json_array_get(array, index));
}

static void copy_text(char *out, size_t size, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    snprintf(out, size, "%s", text != NULL ? text : "");
}

static void parse_peers(dt_slow_reading *out, const json_t *peers)
{
    const json_t *peer;
    size_t i;

    json_array_foreach(peers, i, peer) {
        dt_slow_peer *to = &out->peers[out->peer_count];

        if (out->peer_count == DT_SLOW_PEERS)
            break;
        copy_text(to->local, sizeof(to->local), peer, "local");
        copy_text(to->remote, sizeof(to->remote), peer, "remote");
        to->round_trip_seconds = number_or(peer, "round_trip_seconds", 0);
        out->peer_count += to->local[0] != '\0' && to->remote[0] != '\0' ? 1 : 0;
    }
}

static void parse_times(dt_slow_reading *out, const json_t *times)
{
    const json_t *seconds = json_object_get(times, "seconds");
    const json_t *units = json_object_get(times, "backward_own");

    out->steps = (int64_t)number_or(times, "steps", 0);
    for (int place = 0; place < DT_SLOW_PLACES; place++) {
        const json_t *parts = json_object_get(seconds, dt_slow_place_names[place]);
        bool whole = place == DT_SLOW_INPUT || place == DT_SLOW_SAVE;

        out->blocked += number_at(parts, BLOCKED);
        for (size_t part = 0; part < BLOCKED; part++)
            out->own[place] += number_at(parts, part);
        if (whole)
            continue;
        out->products += number_at(parts, PRODUCTS);
        out->attention += number_at(parts, ATTENTION);
        out->arithmetic += number_at(parts, ARITHMETIC);
        out->host += number_at(parts, HOST);
    }
    for (size_t i = 0; i < DT_SLOW_UNITS && i < json_array_size(units); i++) {
        out->unit[i] = number_at(units, i);
        out->units = (int)i + 1;
    }
    out->products_flops = number_or(times, "products_flops", 0);
    out->attention_flops = number_or(times, "attention_flops", 0);
    out->sent_bytes = number_or(times, "sent_bytes", 0);
    out->best_bytes_per_second = number_or(times, "best_bytes_per_second", 0);
    out->flops_per_second = number_or(times, "flops_per_second", 0);
    out->memory_bytes_per_second = number_or(times, "memory_bytes_per_second", 0);
    out->step_bytes = number_or(times, "step_bytes", 0);
    out->is_device = out->products_flops == 0;
    parse_peers(out, json_object_get(times, "peers"));
}

static void parse_load(dt_slow_reading *out, const json_t *load)
{
    out->run = number_or(load, "run_seconds", -1);
    out->delay = number_or(load, "delay_seconds", -1);
    out->first_run = number_or(load, "first_run_seconds", -1);
    out->first_delay = number_or(load, "first_delay_seconds", -1);
    out->limited = number_or(load, "limited_seconds", -1);
    out->busy = number_or(load, "busy_seconds", -1);
    out->stolen = number_or(load, "stolen_seconds", -1);
    out->processor_count = (int)number_or(load, "processor_count", 0);
    out->mhz = number_or(load, "mhz", -1);
    out->mhz_most = number_or(load, "mhz_most", -1);
    out->heat_stops = number_or(load, "heat_stops", -1);
    out->read_bytes = number_or(load, "read_bytes", -1);
    out->written_bytes = number_or(load, "written_bytes", -1);
    copy_text(out->processors, sizeof(out->processors), load, "processors");
}

/* "runs", "S futex_do_wait", "D ". */
static void parse_samples(dt_slow_reading *out, const json_t *samples)
{
    double most = 0;
    json_t *count;
    const char *key;

    json_object_foreach((json_t *)samples, key, count) {
        double seen = json_number_value(count);

        out->samples += seen;
        if (strncmp(key, "S ", 2) != 0)
            continue;
        out->samples_asleep += seen;
        if (seen > most && key[2] != '\0') {
            most = seen;
            snprintf(out->asleep_in, sizeof(out->asleep_in), "%s", key + 2);
        }
    }
}

bool dt_slow_reading_parse(dt_slow_reading *out, const json_t *facts, double clock_seconds)
{
    const json_t *times = json_object_get(facts, "times"), *load = json_object_get(facts, "load");

    *out = (dt_slow_reading){.at_seconds = clock_seconds};
    if (json_is_object(times))
        parse_times(out, times);
    parse_load(out, load);
    parse_samples(out, json_object_get(facts, "samples"));
    return json_is_object(times) || json_is_object(load);
}

/* --- judgements */

static json_t *number_if(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *parts_to_json(const dt_slow *slow)
{
    json_t *out = json_array();

    for (int i = 0; i < DT_SLOW_PARTS; i++)
        json_array_append_new(
            out, json_pack("{s:s, s:f, s:f, s:o}", "part", dt_slow_part_names[i], "seconds",
                           slow->parts[i], "share",
                           slow->step_seconds > 0 ? slow->parts[i] / slow->step_seconds : 0,
                           "least_seconds", number_if(slow->least[i] >= 0, slow->least[i])));
    return out;
}

static json_t *rank_to_json(const dt_slow *slow, int64_t rank)
{
    const dt_slow_reading *window = &slow->ranks[rank].window;
    json_t *out =
        json_pack("{s:I, s:s, s:f, s:f, s:o, s:o, s:o}", "rank", (json_int_t)rank, "node",
                  slow->node_of(slow->context, rank), "window_seconds",
                  slow->ranks[rank].window_seconds, "window_steps", slow->ranks[rank].window_steps,
                  "processor_share", number_if(window->run >= 0, window->run), "no_processor_share",
                  number_if(window->delay >= 0, window->delay), "mhz",
                  number_if(window->mhz > 0, window->mhz));
    double own = 0;

    if (slow->is_command)
        return out;
    for (int i = 0; i < DT_SLOW_PLACES; i++) {
        char key[64];

        own += window->own[i];
        snprintf(key, sizeof(key), "%s_seconds", dt_slow_place_names[i]);
        json_object_set_new(out, key, json_real(window->own[i]));
    }
    json_object_set_new(out, "own_seconds", json_real(own));
    json_object_set_new(out, "blocked_seconds", json_real(window->blocked));
    return out;
}

static json_t *findings_to_json(const dt_slow *slow)
{
    json_t *out = json_array();

    for (int i = 0; i < slow->finding_count; i++) {
        const dt_slow_finding *finding = &slow->findings[i];

        json_array_append_new(
            out,
            json_pack("{s:s, s:o, s:o, s:o, s:f, s:f, s:o, s:o}", "cause",
                      dt_slow_cause_names[finding->cause], "rank",
                      finding->rank >= 0 ? json_integer(finding->rank) : json_null(), "node",
                      finding->rank >= 0 ? dt_json_text(slow->node_of(slow->context, finding->rank))
                                         : json_null(),
                      "place",
                      finding->place >= 0 ? json_string(dt_slow_place_names[finding->place])
                                          : json_null(),
                      "seconds", finding->seconds, "share", finding->share, "text",
                      dt_json_text(finding->text), "evidence", dt_json_text(finding->evidence)));
    }
    return out;
}

json_t *dt_slow_to_json(const dt_slow *slow)
{
    json_t *ranks = json_array();

    for (int64_t i = 0; i < slow->rank_count; i++)
        json_array_append_new(ranks, rank_to_json(slow, i));
    return json_pack("{s:I, s:o, s:b, s:o, s:o, s:o}", "judgements", (json_int_t)slow->judgements,
                     "step_seconds", number_if(!slow->is_command, slow->step_seconds),
                     "computes_on_gpu", (int)(!slow->is_command && slow->ranks[0].window.is_device),
                     "parts", slow->is_command ? json_null() : parts_to_json(slow), "findings",
                     findings_to_json(slow), "ranks", ranks);
}
