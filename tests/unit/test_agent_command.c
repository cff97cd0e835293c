#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/agent/command.h"
#include "runner/agent/rank/output.h"

static void test_commands_are_understood(void **state)
{
    const char *stop = "{\"command\":\"stop\",\"grace_seconds\":30}";
    const char *attach =
        "{\"command\":\"attach\",\"protocol\":1,\"run\":\"a\",\"attempt\":2,\"from\":7}";
    dt_agent_command command;

    assert_int_equal(dt_agent_command_parse(&command, stop, strlen(stop), NULL), DT_OK);
    assert_int_equal(command.kind, DT_AGENT_COMMAND_STOP);
    assert_true(command.grace_seconds == 30.0);
    dt_agent_command_release(&command);
    assert_int_equal(dt_agent_command_parse(&command, attach, strlen(attach), NULL), DT_OK);
    assert_int_equal(command.kind, DT_AGENT_COMMAND_ATTACH);
    assert_string_equal(command.run, "a");
    assert_int_equal(command.attempt, 2);
    assert_int_equal(command.from, 7);
    dt_agent_command_release(&command);
}

static void test_bad_commands_are_refused_with_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "not JSON"},
        {"[]", "'command' is missing"},
        {"{\"command\":7}", "'command': expected a string"},
        {"{\"command\":\"dance\"}", "unknown command 'dance'"},
        {"{\"command\":\"stop\"}", "'grace_seconds' is missing"},
        {"{\"command\":\"stop\",\"grace_seconds\":-1}", "is not between 0 and"},
        {"{\"command\":\"stop\",\"grace_seconds\":null}", "is not between 0 and"},
        {"{\"command\":\"ack\",\"sequence\":-1}", "is not between 0 and"},
        {"{\"command\":\"signal\",\"rank\":0,\"signal\":0}", "is not between 1 and"},
        {"{\"command\":\"signal\",\"rank\":-2,\"signal\":9}", "is not between -1 and"},
        {"{\"command\":\"start\",\"engine\":\"/e\",\"plan\":{},\"node\":0,\"environment\":{},"
         "\"launcher_lost_seconds\":-1}",
         "'launcher_lost_seconds' is not between 0 and"},
        {"{\"command\":\"start\",\"engine\":\"/e\",\"plan\":{},\"node\":0,\"environment\":{},"
         "\"launcher_lost_seconds\":\"1\"}",
         "'launcher_lost_seconds': expected a number"},
        {"{\"command\":\"diagnose\"}", "'rank' is missing"},
        {"{\"command\":\"diagnose\",\"rank\":-2}", "is not between -1 and"},
        {"{\"command\":\"rendezvous\",\"name\":\"a\",\"values\":[1]}", "the value of rank 0"},
        {"{\"command\":\"start\",\"engine\":\"engine\"}", "not an absolute path"},
        {"{\"command\":\"start\",\"engine\":\"/e\",\"plan\":{},\"node\":0,"
         "\"environment\":{\"A=B\":\"c\"}}",
         "'A=B' is not NAME"},
        {"{\"command\":\"start\",\"engine\":\"/e\",\"plan\":{},\"node\":0,"
         "\"environment\":{\"A\":1}}",
         "'A' is not NAME"},
        {"{\"command\":\"bye\",\"command\":\"bye\"}", "duplicate"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_error err = DT_ERROR_INIT;
        dt_agent_command command;

        assert_int_equal(
            dt_agent_command_parse(&command, cases[i].text, strlen(cases[i].text), &err),
            DT_ERR_CORRUPT);
        if (strstr(err.message, cases[i].part) == NULL)
            fail_msg("'%s' does not say '%s'", err.message, cases[i].part);
        assert_null(command.json);
    }
}

static void test_events_of_a_rank_are_checked(void **state)
{
    static const struct {
        const char *text;
        dt_status wanted;
    } cases[] = {
        {"{\"event\":\"ready\",\"pid\":1,\"device\":\"cpu\"}", DT_OK},
        {"{\"event\":\"metrics\",\"step\":1,\"values\":{\"loss\":1.5,\"x\":null}}", DT_OK},
        {"{\"event\":\"metrics\",\"step\":1,\"values\":{\"loss\":\"1.5\"}}", DT_ERR_CORRUPT},
        {"{\"event\":\"metrics\",\"step\":1.5,\"values\":{}}", DT_ERR_CORRUPT},
        {"{\"event\":\"metrics\",\"values\":{}}", DT_ERR_CORRUPT},
        {"{\"event\":\"started\",\"pid\":1}", DT_ERR_CORRUPT}, /* an event of the agent itself */
        {"{\"event\":\"failed\",\"status\":\"io\",\"message\":\"m\"}", DT_OK},
        {"{\"event\":\"failed\",\"status\":\"io\"}", DT_ERR_CORRUPT},
        {"\"ready\"", DT_ERR_CORRUPT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *kind;
        json_t *event;

        assert_int_equal(
            dt_agent_event_parse(&event, &kind, cases[i].text, strlen(cases[i].text), NULL),
            cases[i].wanted);
        assert_true((event != NULL) == (cases[i].wanted == DT_OK));
        json_decref(event);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_are_understood),
        cmocka_unit_test(test_bad_commands_are_refused_with_what_is_wrong),
        cmocka_unit_test(test_events_of_a_rank_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
