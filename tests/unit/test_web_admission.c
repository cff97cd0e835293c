/* Which connections are accepted and which are closed, by tables and a simulated clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "web/listen.h"
#include "web/web_int.h"
#include "web_support.h"

#define NOW 1000.0

static struct in6_addr address(int number)
{
    struct in6_addr out;

    memset(&out, 0, sizeof(out));
    out.s6_addr[15] = (unsigned char)number;
    return out;
}

/* Returns a client that entered its phase `age` seconds ago. */
static dt_web_client client(dt_web_phase phase, int of, double age)
{
    return (dt_web_client){.phase = phase, .since = NOW - age, .address = address(of), .fd = -1};
}

static int choose(const dt_web_client *clients, int count, int all, int per_address, int newcomer)
{
    struct in6_addr from = address(newcomer);
    dt_web_limits limits = {.all = all, .per_address = per_address};

    return dt_web_admission_choose(clients, count, &limits, &from, NOW);
}

static void test_who_leaves_for_a_newcomer(void **state)
{
    static const struct {
        const char *what;
        struct {
            dt_web_phase phase;
            int of;
            double age;
        } clients[4];
        int newcomer, wanted;
    } cases[] = {
        {"there is room", {{DT_WEB_ASKING, 1, 5}, {DT_WEB_ASKING, 2, 5}}, 3, DT_WEB_ADMIT},
        {"full: the one that has asked for nothing for longest",
         {{DT_WEB_ASKING, 1, 2},
          {DT_WEB_ASKING, 2, 5},
          {DT_WEB_WORKING, 3, 9},
          {DT_WEB_ASKING, 4, 3}},
         5,
         1},
        {"full: nobody who has only just come",
         {{DT_WEB_ASKING, 1, 0.1},
          {DT_WEB_ASKING, 2, 0.4},
          {DT_WEB_WORKING, 3, 99},
          {DT_WEB_WORKING, 4, 9}},
         5,
         DT_WEB_WAIT},
        {"full: nobody whose answer is being made or taken",
         {{DT_WEB_WORKING, 1, 50},
          {DT_WEB_ANSWERING, 2, 4},
          {DT_WEB_WORKING, 3, 9},
          {DT_WEB_ANSWERING, 4, 1}},
         5,
         DT_WEB_WAIT},
        {"full: who asks before who does not read",
         {{DT_WEB_ANSWERING, 1, 50},
          {DT_WEB_ASKING, 2, 2},
          {DT_WEB_WORKING, 3, 9},
          {DT_WEB_WORKING, 4, 1}},
         5,
         1},
        {"full: who does not read",
         {{DT_WEB_ANSWERING, 1, 6},
          {DT_WEB_ANSWERING, 2, 50},
          {DT_WEB_WORKING, 3, 9},
          {DT_WEB_WORKING, 4, 1}},
         5,
         1},
        {"one address has its share: one of its own leaves",
         {{DT_WEB_ASKING, 2, 9}, {DT_WEB_ASKING, 1, 2}, {DT_WEB_ASKING, 1, 3}},
         1,
         2},
        {"one address has its share: the others stay",
         {{DT_WEB_ASKING, 2, 9}, {DT_WEB_WORKING, 1, 2}, {DT_WEB_WORKING, 1, 3}},
         1,
         DT_WEB_WAIT},
        {"another address has its share",
         {{DT_WEB_WORKING, 1, 9}, {DT_WEB_WORKING, 1, 2}},
         2,
         DT_WEB_ADMIT},
        {"who leaves already is not counted",
         {{DT_WEB_LEAVING, 1, 9},
          {DT_WEB_LEAVING, 1, 9},
          {DT_WEB_LEAVING, 1, 9},
          {DT_WEB_ASKING, 1, 9}},
         1,
         DT_WEB_ADMIT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_web_client clients[4];
        int got;

        for (int g = 0; g < 4; g++)
            clients[g] =
                client(cases[i].clients[g].phase, cases[i].clients[g].of, cases[i].clients[g].age);
        got = choose(clients, 4, 4, 2, cases[i].newcomer);
        if (got != cases[i].wanted)
            print_error("%s: %d instead of %d\n", cases[i].what, got, cases[i].wanted);
        assert_int_equal(got, cases[i].wanted);
    }
}

static void test_those_who_leave_take_room_until_they_are_gone(void **state)
{
    dt_web_client clients[8];

    for (int i = 0; i < 8; i++)
        clients[i] = client(i < 4 ? DT_WEB_LEAVING : DT_WEB_ASKING, 1, 20);
    assert_int_equal(choose(clients, 8, 4, 4, 1), DT_WEB_WAIT);
    clients[0].phase = DT_WEB_FREE;
    assert_true(choose(clients, 8, 4, 4, 1) >= 4);
}

static void test_a_request_and_an_answer_have_their_time_however_they_trickle(void **state)
{
    static const struct {
        dt_web_phase phase;
        double age;
        bool over;
    } cases[] = {
        {DT_WEB_ASKING, 9, false},     {DT_WEB_ASKING, 11, true},    {DT_WEB_WORKING, 500, false},
        {DT_WEB_ANSWERING, 50, false}, {DT_WEB_ANSWERING, 61, true}, {DT_WEB_LEAVING, 500, false},
        {DT_WEB_FREE, 500, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_web_client one = client(cases[i].phase, 1, cases[i].age);

        assert_int_equal(dt_web_client_is_over(&one, NOW), cases[i].over);
    }
}

static void test_the_limits_follow_from_the_descriptors(void **state)
{
    assert_int_equal(dt_web_limits_of(1 << 20).all, DT_WEB_CLIENTS_MAX);
    assert_int_equal(dt_web_limits_of(1 << 20).per_address, 96);
    assert_int_equal(dt_web_limits_of(64).all, 12);
    assert_int_equal(dt_web_limits_of(64).per_address, 9); /* a browser opens six */
    assert_int_equal(dt_web_limits_of(8).all, 4);
}

/* The health check has its own handles. */
static void test_cheap_requests_never_wait_for_expensive_ones(void **state)
{
    test_web *web = *state;
    dt_web_handle *expensive[DT_WEB_HANDLES], *cheap;
    dt_error err = DT_ERROR_INIT;
    dt_web_stores stores;

    assert_int_equal(dt_web_stores_open(&stores, web->rows.path, &err), DT_OK);
    for (int i = 0; i < DT_WEB_HANDLES; i++)
        assert_int_equal(dt_web_stores_take(&expensive[i], &stores, DT_WEB_EXPENSIVE, &err), DT_OK);
    assert_int_equal(dt_web_stores_take(&cheap, &stores, DT_WEB_CHEAP, &err), DT_OK);
    dt_web_stores_give_back(&stores, cheap);
    dt_web_stores_end_waits(&stores); /* waiting is refused at once */
    assert_int_equal(dt_web_stores_take(&cheap, &stores, DT_WEB_EXPENSIVE, &err), DT_ERR_BUSY);
    for (int i = 0; i < DT_WEB_HANDLES; i++)
        dt_web_stores_give_back(&stores, expensive[i]);
    dt_web_stores_close(&stores);
}

/* The store is moved away, then replaced: each answer is from the store at the path. */
static void test_a_store_that_is_replaced_is_seen(void **state)
{
    test_web *web = *state;
    test_store *t = &web->rows, other = {.err = DT_ERROR_INIT};
    json_t *answer;
    char aside[256];

    test_store_run(t, "aa", "n");
    json_decref(test_web_json(web, 200, "/api/v1/runs/aa"));
    snprintf(aside, sizeof(aside), "%s/aside.db", t->folder);
    dt_store_close(t->store);
    t->store = NULL;
    assert_int_equal(rename(t->path, aside), 0);
    answer = test_web_json(web, 503, "/healthz"); /* a public route: the message has no path */
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(answer, "error"), "message")),
        "the run store cannot be read");
    json_decref(answer);
    json_decref(test_web_json(web, 503, "/api/v1/runs/aa"));
    assert_int_equal(dt_store_open(&other.store, t->path, &other.err), DT_OK);
    test_store_run(&other, "bb", "n");
    json_decref(test_web_json(web, 404, "/api/v1/runs/aa"));
    json_decref(test_web_json(web, 200, "/api/v1/runs/bb"));
    json_decref(test_web_json(web, 200, "/healthz"));
    dt_store_close(other.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_leaves_for_a_newcomer),
        cmocka_unit_test(test_those_who_leave_take_room_until_they_are_gone),
        cmocka_unit_test(test_a_request_and_an_answer_have_their_time_however_they_trickle),
        cmocka_unit_test(test_the_limits_follow_from_the_descriptors),
        cmocka_unit_test_setup_teardown(test_cheap_requests_never_wait_for_expensive_ones,
                                        test_web_setup, test_web_teardown),
        cmocka_unit_test_setup_teardown(test_a_store_that_is_replaced_is_seen, test_web_setup,
                                        test_web_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
