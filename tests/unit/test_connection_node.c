/* The connection to a node and its phases, with a script in place of the agent and of commands on the node. The script
 * gets the arguments of dtrun-agent: connect FOLDER [--start], end FOLDER.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "runner/supervisor/connection/connection_int.h"

/* Scripts read their input before they exit, so that their output is not lost with the connection. */
#define HELLO                                                                                    \
    "read -r attach\n"                                                                           \
    "echo '{\"event\":\"hello\",\"protocol\":1,\"version\":\"t\",\"next_sequence\":0,\"state\":" \
    "\"idle\",\"boot_id\":\"b\"}'\n"
#define RELEASED "echo '{\"event\":\"released\",\"sequence\":0,\"time_ms\":1,\"left\":[]}'\n"
#define REFUSES                                                                                   \
    "read -r attach; echo '{\"event\":\"error\",\"message\":\"no such run\",\"refused\":true}'; " \
    "cat\n"
#define UNTIL_BYE "while read -r line; do case $line in *'\"bye\"'*) exit 0;; esac; done\n"

typedef struct fixture {
    char folder[64], agent[80];
    uv_loop_t loop;
    dt_poll_clock clock;
    dt_node_link *link;
    int attached, events, refused, ended, lost, settled, batches; /* calls received */
} fixture;

/* --- the run */

static bool is_over(void *context)
{
    return false;
}

static int64_t next_event(void *context, int64_t node)
{
    const fixture *t = context;

    return t->events;
}

static void judge(void *context, int64_t node, dt_liveness_facts *facts)
{
    facts->peers = DT_PEERS_HEARD;
}

static bool may_wait(void *context, int64_t node, dt_status failed)
{
    return false;
}

static dt_status prepared(void *context, int64_t node, dt_error *err)
{
    return DT_OK;
}

static void preparing(void *context, int64_t node, const char *text) {}

static void attached(void *context, int64_t node, const char *boot_id)
{
    fixture *t = context;

    assert_string_equal(boot_id, "b");
    assert_int_equal(dt_node_link_phase(t->link), DT_NODE_ATTACHED);
    t->attached++;
}

static void event(void *context, int64_t node, dt_message *message)
{
    fixture *t = context;

    t->events++;
    if (message->kind == DT_MESSAGE_RELEASED)
        dt_node_link_release(t->link);
}

static bool damaged(void *context, int64_t node, const char *text, size_t length, const char *why)
{
    return false;
}

static void alive(void *context, int64_t node, const dt_message *message) {}

static void rendezvous(void *context, const dt_message *message) {}

static void refused(void *context, int64_t node, const char *why)
{
    ((fixture *)context)->refused++;
}

static void batch(void *context)
{
    ((fixture *)context)->batches++;
}

static void unreachable(void *context, int64_t node, const char *text) {}

static void ended(void *context, int64_t node, const char *why)
{
    fixture *t = context;

    assert_non_null(strstr(why, "no such run"));
    t->ended++;
}

static void lost(void *context, int64_t node)
{
    ((fixture *)context)->lost++;
}

static void settled(void *context)
{
    ((fixture *)context)->settled++;
}

static const dt_node_calls calls = {.is_over = is_over,
                                    .next_event = next_event,
                                    .judge = judge,
                                    .may_wait = may_wait,
                                    .prepared = prepared,
                                    .preparing = preparing,
                                    .attached = attached,
                                    .event = event,
                                    .damaged = damaged,
                                    .alive = alive,
                                    .rendezvous = rendezvous,
                                    .refused = refused,
                                    .batch = batch,
                                    .unreachable = unreachable,
                                    .ended = ended,
                                    .lost = lost,
                                    .settled = settled};

/* --- a node */

static void open_node(fixture *t)
{
    dt_node_setup setup = {.loop = &t->loop,
                           .clock = &t->clock,
                           .run = "r",
                           .name = "localhost",
                           .attempt = 1,
                           .node_count = 1,
                           .world_size = 1};

    *t = (fixture){.folder = "/tmp/dtrun-node-XXXXXX"};
    assert_non_null(mkdtemp(t->folder));
    snprintf(t->agent, sizeof(t->agent), "%s/agent", t->folder);
    uv_loop_init(&t->loop);
    dt_poll_clock_open(&t->clock, &t->loop);
    t->link = dt_node_link_open(&setup, &calls, t);
}

static void close_node(fixture *t)
{
    dt_node_link_close(t->link);
    dt_poll_clock_close(&t->clock);
    while (uv_run(&t->loop, UV_RUN_DEFAULT) != 0)
        ;
    assert_int_equal(uv_loop_close(&t->loop), 0);
    dt_node_link_free(t->link);
    assert_int_equal(dt_file_remove_tree(t->folder, NULL), DT_OK);
}

/* Makes a script with actions for `connect` and for `end`. */
static void place_agent(fixture *t, const char *connect, const char *end)
{
    dt_node_layout place = {
        .node = "localhost", .here = true, .agent = t->agent, .folder = t->folder};
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "#!/bin/sh\ncase $1 in\nconnect)\n%s;;\nend)\n%s;;\nesac\n", connect,
                      end);
    assert_int_equal(dt_file_write_atomic(t->agent, text.data, text.length, 0700, NULL), DT_OK);
    dt_strbuf_release(&text);
    dt_node_link_set_place(t->link, &place);
}

static void run_until(fixture *t, dt_node_phase phase)
{
    bool alive = true;

    while (dt_node_link_phase(t->link) != phase) {
        assert_true(alive);
        alive = uv_run(&t->loop, UV_RUN_ONCE) != 0;
    }
}

/* --- the phases */

static void test_from_hello_to_goodbye(void **state)
{
    fixture t;

    open_node(&t);
    place_agent(&t, HELLO RELEASED UNTIL_BYE, "exit 1");
    dt_node_link_begin(t.link);
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_CONNECTING);
    run_until(&t, DT_NODE_RELEASED);
    assert_int_equal(t.attached, 1);
    assert_int_equal(t.events, 1);
    assert_true(dt_node_link_is_idle(t.link));
    assert_true(dt_node_link_is_attached(t.link));
    assert_true(dt_node_link_has_ended(t.link));
    assert_false(dt_node_link_is_away(t.link));
    dt_node_link_stored(t.link);
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_LEAVING);
    run_until(&t, DT_NODE_GONE);
    assert_true(t.settled > 0);
    close_node(&t);
}

static void test_what_is_cut_is_connected_again(void **state)
{
    fixture t;

    open_node(&t);
    place_agent(&t, HELLO "test -e $2/again && cat || : >$2/again\n", "exit 1");
    dt_node_link_begin(t.link);
    run_until(&t, DT_NODE_BETWEEN);
    assert_int_equal(t.attached, 1);
    assert_false(dt_node_link_is_attached(t.link));
    run_until(&t, DT_NODE_ATTACHED);
    assert_int_equal(t.attached, 2);
    assert_int_equal(t.lost, 0);
    close_node(&t);
}

static void test_an_unusable_agent_is_ended(void **state)
{
    fixture t;

    open_node(&t);
    place_agent(&t, REFUSES, "exit 0");
    dt_node_link_begin(t.link);
    run_until(&t, DT_NODE_ENDING);
    assert_int_equal(t.attached, 0);
    run_until(&t, DT_NODE_RELEASED);
    assert_int_equal(t.ended, 1);
    dt_node_link_stored(t.link); /* there is no connection */
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_GONE);
    close_node(&t);
}

static void test_a_node_that_was_preempted_is_lost_for_good(void **state)
{
    fixture t;

    open_node(&t);
    place_agent(&t, "echo 'taken back: job 7 has ended' >&2\n", "exit 1");
    dt_node_link_begin(t.link);
    run_until(&t, DT_NODE_LOST);
    assert_int_equal(t.lost, 1);
    assert_true(dt_node_link_is_preempted(t.link));
    assert_true(dt_node_link_is_unrecoverable(t.link));
    assert_string_equal(dt_node_link_problem(t.link), "node localhost is gone (job 7 has ended)");
    close_node(&t);
}

static void test_a_released_node_is_disconnected(void **state)
{
    fixture t;

    open_node(&t);
    place_agent(&t, "test $# = 2 || exit 1\n" HELLO UNTIL_BYE, "exit 1"); /* it is not started */
    dt_node_link_remember_release(t.link);
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_LEAVING);
    dt_node_link_begin(t.link);
    run_until(&t, DT_NODE_GONE);
    assert_int_equal(t.attached, 0);
    close_node(&t);
}

/* Nothing was started on the node yet, so that no script is run. */
static void test_an_untouched_node_is_left_alone(void **state)
{
    fixture t;

    open_node(&t);
    dt_node_link_stop(t.link, 1, true);
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_UNUSED);
    dt_node_link_begin(t.link);
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_UNUSED);
    close_node(&t);

    open_node(&t);
    dt_node_link_remember_release(t.link);
    dt_node_link_begin(t.link);
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_GONE);
    close_node(&t);

    open_node(&t);
    dt_node_link_lose_place(t.link); /* there may be ranks, in an unknown folder */
    dt_node_link_stop(t.link, 1, true);
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_NEW);
    close_node(&t);
}

static void test_final_phases_ignore_calls(void **state)
{
    fixture t;

    open_node(&t);
    place_agent(&t, "cat\n", "exit 1");
    dt_node_link_begin(t.link);
    dt_node_link_give_up(t.link, "enough");
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_LOST);
    dt_node_link_begin(t.link);
    dt_node_link_stop(t.link, 1, true);
    dt_node_link_release(t.link);
    dt_node_link_stored(t.link);
    dt_node_link_give_up(t.link, "more");
    assert_int_equal(dt_node_link_phase(t.link), DT_NODE_LOST);
    assert_string_equal(dt_node_link_problem(t.link), "enough");
    assert_int_equal(t.lost, 1);
    close_node(&t);
}

/* --- the table */

static int count_reactions(dt_reaction reaction)
{
    int count = 0;

    for (dt_node_phase phase = 0; phase < DT_NODE_PHASE_COUNT; phase++)
        for (dt_node_event event = 0; event < DT_NODE_EVENT_COUNT; event++)
            count += dt_node_reaction(phase, event) == reaction ? 1 : 0;
    return count;
}

static void test_each_phase_says_what_each_event_means(void **state)
{
    assert_int_equal(count_reactions(DT_REACTION_MISSING), 0);
    assert_true(count_reactions(DT_REACTION_HANDLED) > 0);
    assert_true(count_reactions(DT_REACTION_IGNORED) > 0);
    assert_true(count_reactions(DT_REACTION_IMPOSSIBLE) > 0);
}

static void test_an_impossible_event_changes_nothing(void **state)
{
    for (dt_node_event event = 0; event < DT_NODE_EVENT_COUNT; event++) {
        fixture t;

        if (dt_node_reaction(DT_NODE_NEW, event) != DT_REACTION_IMPOSSIBLE)
            continue;
        open_node(&t);
        dt_node_dispatch(t.link, event, "a problem");
        assert_int_equal(dt_node_link_phase(t.link), DT_NODE_NEW);
        assert_string_equal(dt_node_link_problem(t.link), "");
        close_node(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_phase_says_what_each_event_means),
        cmocka_unit_test(test_an_impossible_event_changes_nothing),
        cmocka_unit_test(test_from_hello_to_goodbye),
        cmocka_unit_test(test_what_is_cut_is_connected_again),
        cmocka_unit_test(test_an_unusable_agent_is_ended),
        cmocka_unit_test(test_a_node_that_was_preempted_is_lost_for_good),
        cmocka_unit_test(test_a_released_node_is_disconnected),
        cmocka_unit_test(test_an_untouched_node_is_left_alone),
        cmocka_unit_test(test_final_phases_ignore_calls),
    };

    signal(SIGPIPE, SIG_IGN); /* an agent may exit before it is written to */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
