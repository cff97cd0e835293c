/* Claims of GPUs between processes: one wins, the last copy frees, and nothing that a holder does hangs who asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/node_setup/remote_helper/gpu_claims.h"

enum { ROUNDS = 100, RIVALS = 4 };

static const char line[] =
    "{\"run\": \"r12345\", \"owner\": \"here-1\", \"since_ms\": 1, \"user\": \"x\"}";
static char key[DT_CLAIM_KEY_SIZE];

/* A key that no other test has at the same time. */
static int begin(void **state)
{
    static int count;

    snprintf(key, sizeof(key), "GPU-test-%d-%d", (int)getpid(), count++);
    return 0;
}

static void answer_all(int fd, const char *text)
{
    struct pollfd one = {fd, POLLIN, 0};

    while (poll(&one, 1, -1) > 0)
        dt_claim_answer(fd, text);
}

/* Starts a process that claims the GPU as this user, and answers with `text`, or not at all. */
static pid_t hold(const char *text, uid_t uid)
{
    int ends[2], fd;
    char byte = 'x';
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        if (uid != 0 && setuid(uid) != 0)
            _exit(1);
        byte = dt_claim_take(&fd, key, NULL) == DT_OK ? 'y' : 'n';
        if (write(ends[1], &byte, 1) != 1)
            _exit(1);
        if (text != NULL)
            answer_all(fd, text);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ends[0]);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_a_claim_names_its_holder(void **state)
{
    pid_t pid = hold(line, 0);
    dt_claim_holder holder;
    dt_error err = DT_ERROR_INIT;
    int fd;

    assert_int_equal(dt_claim_take(&fd, key, &err), DT_ERR_BUSY);
    dt_error_clear(&err);
    assert_true(dt_claim_ask(&holder, key));
    assert_string_equal(holder.run, "r12345");
    assert_string_equal(holder.owner, "here-1");
    assert_int_equal(holder.uid, getuid());
    assert_non_null(strstr(holder.who, " (run r12345, since 1970-01-01 "));
    assert_true(holder.shared >= 0);
    end(pid);
    assert_int_equal(dt_claim_take(&fd, key, NULL), DT_ERR_BUSY); /* we share it */
    dt_claim_close(holder.shared);
    assert_false(dt_claim_ask(&holder, key));
    assert_int_equal(dt_claim_take(&fd, key, NULL), DT_OK);
    dt_claim_close(fd);
}

static void test_the_last_process_frees(void **state)
{
    dt_claim_holder holder;
    int fd, other;
    pid_t pid;

    assert_int_equal(dt_claim_take(&fd, key, NULL), DT_OK);
    pid = fork();
    if (pid == 0) {
        fcntl(fd, F_SETFD, 0); /* as a rank inherits it */
        execlp("sleep", "sleep", "1000", NULL);
        _exit(1);
    }
    dt_claim_close(fd);
    assert_int_equal(dt_claim_take(&other, key, NULL), DT_ERR_BUSY);
    assert_true(dt_claim_ask(&holder, key));
    assert_non_null(strstr(holder.who, "which does not answer"));
    assert_int_equal(holder.run[0], '\0');
    end(pid);
    assert_int_equal(dt_claim_take(&other, key, NULL), DT_OK);
    dt_claim_close(other);
}

/* Many processes at the same moment, many times. */
static void test_one_of_many_wins(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        int go[2], won[2], winners = 0, fd;
        pid_t rivals[RIVALS];
        char byte;

        begin(state);
        assert_int_equal(pipe(go), 0);
        assert_int_equal(pipe(won), 0);
        for (int i = 0; i < RIVALS; i++) {
            rivals[i] = fork();
            if (rivals[i] == 0) {
                close(go[1]);
                (void)!read(go[0], &byte, 1); /* ends for all at once */
                byte = dt_claim_take(&fd, key, NULL) == DT_OK ? 'y' : 'n';
                (void)!write(won[1], &byte, 1);
                for (;;)
                    pause();
            }
        }
        close(go[0]);
        close(go[1]);
        for (int i = 0; i < RIVALS; i++) {
            assert_int_equal(read(won[0], &byte, 1), 1);
            winners += byte == 'y';
        }
        for (int i = 0; i < RIVALS; i++)
            end(rivals[i]);
        close(won[0]);
        close(won[1]);
        assert_int_equal(winners, 1);
        assert_int_equal(dt_claim_take(&fd, key, NULL), DT_OK);
        dt_claim_close(fd);
    }
}

static void test_another_user_is_named_by_the_kernel(void **state)
{
    static const char forged[] = "{\"run\": \"r1\", \"owner\": \"here-1\", \"user\": \"root\"}";
    dt_claim_holder holder;
    pid_t pid;

    if (getuid() != 0)
        skip();
    pid = hold(forged, 1); /* daemon, on every Linux */
    assert_true(dt_claim_ask(&holder, key));
    assert_int_equal(holder.uid, 1);
    assert_string_equal(holder.who, "daemon (run r1)");
    assert_int_equal(holder.shared, -1); /* he does not share it */
    end(pid);
}

static void test_odd_answers_do_no_harm(void **state)
{
    static const char *const answers[] = {"",
                                          "\n",
                                          "{",
                                          "[]",
                                          "null",
                                          "{\"run\": 7}",
                                          "{\"run\": \"\\u0000\\u001b[2J\\n\", \"owner\": {}}"};
    char *much = malloc(1 << 20);
    dt_claim_holder holder;

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        pid_t pid = hold(answers[i], 0);

        assert_true(dt_claim_ask(&holder, key));
        for (const char *at = holder.who; *at != '\0'; at++)
            assert_in_range(*at, ' ', '~');
        dt_claim_close(holder.shared);
        end(pid);
    }
    memset(much, 'a', (1 << 20) - 1);
    much[(1 << 20) - 1] = '\0';
    for (int i = 0; i < 2; i++) {
        pid_t pid = hold(much, 0);

        assert_true(dt_claim_ask(&holder, key));
        assert_true(strlen(holder.who) < sizeof(holder.who));
        dt_claim_close(holder.shared);
        end(pid);
        snprintf(key, sizeof(key), "%.*s", DT_CLAIM_KEY_SIZE - 1, much); /* the longest key */
    }
    free(much);
}

/* A holder that is paused fills its queue: nobody waits for it for long, and it keeps its claim. */
static void test_a_paused_holder_hangs_nobody(void **state)
{
    pid_t pid = hold(line, 0);
    double begun = dt_clock_monotonic_seconds();
    dt_claim_holder holder;
    int fd;

    kill(pid, SIGSTOP);
    assert_true(dt_claim_ask(&holder, key));
    assert_true(dt_clock_monotonic_seconds() - begun <
                30); /* a second, if nothing else runs here */
    assert_int_equal(holder.uid, getuid());
    assert_int_equal(dt_claim_take(&fd, key, NULL), DT_ERR_BUSY);
    end(pid);
}

static void test_no_uuid_without_a_driver(void **state)
{
    char uuid[DT_CLAIM_KEY_SIZE] = "x";

    dt_claim_uuid(uuid, -1);
    assert_string_equal(uuid, "");
    dt_claim_uuid(uuid, 63);
    assert_string_equal(uuid, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_claim_names_its_holder, begin),
        cmocka_unit_test_setup(test_the_last_process_frees, begin),
        cmocka_unit_test_setup(test_one_of_many_wins, begin),
        cmocka_unit_test_setup(test_another_user_is_named_by_the_kernel, begin),
        cmocka_unit_test_setup(test_odd_answers_do_no_harm, begin),
        cmocka_unit_test_setup(test_a_paused_holder_hangs_nobody, begin),
        cmocka_unit_test(test_no_uuid_without_a_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
