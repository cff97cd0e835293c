/* The channel of a rank; the test acts as the agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/channel/events.h"

typedef struct fixture {
    int agent;
    dt_events *events;
} fixture;

static int make_channel(void)
{
    int ends[2];
    char number[16];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    snprintf(number, sizeof(number), "%d", ends[1]);
    setenv("DTRUN_CHANNEL", number, 1);
    return ends[0];
}

static int open_channel(void **state)
{
    fixture *f = calloc(1, sizeof(*f));

    f->agent = make_channel();
    assert_int_equal(dt_events_open(&f->events, 0, 2, NULL), DT_OK);
    *state = f;
    return 0;
}

static int close_channel(void **state)
{
    fixture *f = *state;

    dt_events_close(f->events);
    close(f->agent);
    unsetenv("DTRUN_CHANNEL");
    free(f);
    return 0;
}

static void say(fixture *f, const char *text)
{
    assert_int_equal(dt_file_write_all(f->agent, text, strlen(text), NULL), DT_OK);
}

static dt_status meet(fixture *f, json_t **values, dt_error *err)
{
    return dt_events_rendezvous(f->events, "here", "\x01\xfe", 2, 5.0, values, err);
}

static void test_one_rank_without_a_channel_answers_itself(void **state)
{
    dt_events *events;
    json_t *values;

    unsetenv("DTRUN_CHANNEL");
    assert_int_equal(dt_events_open(&events, 0, 1, NULL), DT_OK);
    assert_int_equal(dt_events_rendezvous(events, "here", "\x01\xfe", 2, 1.0, &values, NULL),
                     DT_OK);
    assert_int_equal(json_array_size(values), 1);
    assert_string_equal(json_string_value(json_array_get(values, 0)), "01fe");
    json_decref(values);
    dt_events_close(events);
}

static void test_several_ranks_without_a_channel_are_refused(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_events *events;

    unsetenv("DTRUN_CHANNEL");
    assert_int_equal(dt_events_open(&events, 0, 2, &err), DT_ERR_USAGE);
    assert_null(events);
    assert_non_null(strstr(err.message, "DTRUN_CHANNEL is not set"));
}

static void test_a_channel_that_is_not_a_socket_is_refused(void **state)
{
    static const char *const numbers[] = {"x", "-1", "9999", "99999999999999999999", "1x"};
    dt_events *events;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        setenv("DTRUN_CHANNEL", numbers[i], 1);
        assert_int_equal(dt_events_open(&events, 0, 1, NULL), DT_ERR_USAGE);
        assert_null(events);
    }
    unsetenv("DTRUN_CHANNEL");
}

static void *send_a_hundred(void *self)
{
    for (int i = 0; i < 100; i++)
        if (dt_events_send(self, json_pack("{s:s, s:i}", "event", "phase", "number", i), NULL) !=
            DT_OK)
            return self;
    return NULL;
}

static void test_lines_of_many_threads_stay_whole(void **state)
{
    fixture *f = *state;
    pthread_t threads[4];
    FILE *lines = fdopen(dup(f->agent), "r");
    int seen[100] = {0};
    char line[256];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_a_hundred, f->events), 0);
    for (int i = 0; i < 400; i++) {
        json_t *object;

        assert_non_null(fgets(line, sizeof(line), lines));
        object = json_loads(line, 0, NULL);
        assert_non_null(object);
        seen[json_integer_value(json_object_get(object, "number"))]++;
        json_decref(object);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 4);
    fclose(lines);
}

static void test_a_rendezvous_gives_the_values_of_all_ranks(void **state)
{
    fixture *f = *state;
    char line[256] = {0};
    json_t *values;

    say(f, "{\"command\":\"rendezvous\",\"name\":\"other\",\"values\":[\"aa\",\"bb\"]}\n"
           "{\"command\":\"rendezvous\",\"name\":\"here\",\"values\":[\"01fe\",\"\"]}\n");
    assert_int_equal(meet(f, &values, NULL), DT_OK);
    assert_int_equal(json_array_size(values), 2);
    assert_string_equal(json_string_value(json_array_get(values, 0)), "01fe");
    assert_string_equal(json_string_value(json_array_get(values, 1)), "");
    json_decref(values);
    assert_true(recv(f->agent, line, sizeof(line) - 1, 0) > 0);
    assert_string_equal(line, "{\"event\":\"rendezvous\",\"name\":\"here\",\"value\":\"01fe\"}\n");
}

static void test_a_wrong_answer_is_an_error(void **state)
{
    static const char *const answers[] = {"[\"01\"]",         "[\"01\",\"02\",\"03\"]",
                                          "[\"01\",null]",    "[\"01\",\"0g\"]",
                                          "[\"01\",\"012\"]", "[]"};
    fixture *f = *state;

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        dt_error err = DT_ERROR_INIT;
        json_t *values;
        char line[256];

        snprintf(line, sizeof(line),
                 "{\"command\":\"rendezvous\",\"name\":\"here\",\"values\":%s}\n", answers[i]);
        say(f, line);
        assert_int_equal(meet(f, &values, &err), DT_ERR_CORRUPT);
        assert_null(values);
        assert_non_null(strstr(err.message, "rendezvous 'here'"));
    }
}

static void test_unknown_lines_are_ignored(void **state)
{
    fixture *f = *state;
    json_t *values;
    char *junk = malloc(DT_EVENT_MAX_BYTES + 100000);

    memset(junk, 'x', DT_EVENT_MAX_BYTES + 100000);
    say(f, "garbage\n\n[1]\n{}\n{\"command\":\"dance\"}\n{\"command\":7}\n\xff\xfe\n"
           "{\"command\":\"rendezvous\",\"name\":\"here\"}\n"
           "{\"command\":\"rendezvous\",\"name\":[],\"values\":[]}\n");
    assert_int_equal(dt_file_write_all(f->agent, junk, DT_EVENT_MAX_BYTES + 100000, NULL), DT_OK);
    say(f, "\n{\"command\":\"rendezvous\",\"name\":\"here\",\"values\":[\"01\",\"02\"]}\n");
    assert_int_equal(meet(f, &values, NULL), DT_OK);
    json_decref(values);
    free(junk);
}

static void test_a_rendezvous_that_nobody_answers_times_out(void **state)
{
    fixture *f = *state;
    dt_error err = DT_ERROR_INIT;
    double start = dt_clock_monotonic_seconds();
    json_t *values;

    assert_int_equal(dt_events_rendezvous(f->events, "here", "", 0, 0.2, &values, &err),
                     DT_ERR_TIMEOUT);
    assert_null(values);
    assert_true(dt_clock_monotonic_seconds() - start < 60);
    assert_non_null(strstr(err.message, "rendezvous 'here'"));
}

static void test_an_event_over_the_limit_is_refused(void **state)
{
    fixture *f = *state;
    char *text = malloc(DT_EVENT_MAX_BYTES + 1);

    memset(text, 'x', DT_EVENT_MAX_BYTES);
    text[DT_EVENT_MAX_BYTES] = '\0';
    assert_int_equal(
        dt_events_send(f->events, json_pack("{s:s, s:s}", "event", "phase", "text", text), NULL),
        DT_ERR_UNSUPPORTED);
    free(text);
}

static void test_sending_to_an_agent_that_reads_no_more_is_an_error(void **state)
{
    fixture *f = *state;

    shutdown(f->agent, SHUT_RD);
    assert_int_equal(dt_events_send(f->events, json_pack("{s:s}", "event", "phase"), NULL),
                     DT_ERR_PEER);
}

static void test_the_end_of_the_channel_ends_the_process(void **state)
{
    double start = dt_clock_monotonic_seconds();
    int agent = make_channel(), status;
    pid_t child = fork();

    if (child == 0) {
        dt_events *events;

        close(agent);
        if (dt_events_open(&events, 0, 2, NULL) != DT_OK)
            _exit(7);
        dt_clock_sleep_seconds(200);
        _exit(8);
    }
    close((int)strtol(getenv("DTRUN_CHANNEL"), NULL, 10));
    unsetenv("DTRUN_CHANNEL");
    close(agent);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_true(dt_clock_monotonic_seconds() - start < 100);
}

#define WITH_CHANNEL(test) cmocka_unit_test_setup_teardown(test, open_channel, close_channel)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_without_a_channel_answers_itself),
        cmocka_unit_test(test_several_ranks_without_a_channel_are_refused),
        cmocka_unit_test(test_a_channel_that_is_not_a_socket_is_refused),
        WITH_CHANNEL(test_lines_of_many_threads_stay_whole),
        WITH_CHANNEL(test_a_rendezvous_gives_the_values_of_all_ranks),
        WITH_CHANNEL(test_a_wrong_answer_is_an_error),
        WITH_CHANNEL(test_unknown_lines_are_ignored),
        WITH_CHANNEL(test_a_rendezvous_that_nobody_answers_times_out),
        WITH_CHANNEL(test_an_event_over_the_limit_is_refused),
        WITH_CHANNEL(test_sending_to_an_agent_that_reads_no_more_is_an_error),
        cmocka_unit_test(test_the_end_of_the_channel_ends_the_process),
    };

    return cmocka_run_group_tests_name("events: the channel of a rank", tests, NULL, NULL);
}
