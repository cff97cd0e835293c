/* Which environment variables of a launch are stored with the run, and which a later supervisor gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/supervisor/folder/launch_env.h"

static char folder[] = "/tmp/dtrun-launch-env-XXXXXX";
static dt_arena arena;
static dt_error err;

static int folder_make(void **state)
{
    dt_arena_init(&arena, 0);
    return mkdtemp(folder) == NULL;
}

static int folder_remove(void **state)
{
    dt_arena_release(&arena);
    return dt_file_remove_tree(folder, NULL) != DT_OK;
}

static void test_what_matters_is_kept_and_secrets_are_not(void **state)
{
    static const struct {
        const char *assignment, *also;
        bool kept;
    } cases[] = {
        {"PATH=/bin", NULL, true},
        {"HOME=/root", NULL, true},
        {"LC_ALL=C", NULL, true},
        {"XDG_RUNTIME_DIR=/run/user/0", NULL, true},
        {"SSH_AUTH_SOCK=/tmp/a", NULL, true},
        {"KRB5CCNAME=FILE:/tmp/b", NULL, true},
        {"SLURM_JOB_ID=7", NULL, true},
        {"NCCL_DEBUG=INFO", NULL, true},
        {"CUDA_VISIBLE_DEVICES=0,1", NULL, true},
        {"https_proxy=http://proxy:3128", NULL, true},
        {"https_proxy=http://me:word@proxy:3128", NULL, false},
        {"HTTPS_PROXY=http://me:word@proxy:3128", NULL, false},
        {"DTRUN_ENGINE=/a", NULL, true},
        {"DTRUN_TEST_TIMES=0.5", NULL, true},
        {"DTRUN_READY_FD=3", NULL, false},
        {"DTRUN_RUN_SECRET=ab", NULL, false},
        {"DTRUN_LAUNCH_UMASK=0000", NULL, false}, /* would be read as dtrun's own */
        {"AWS_SECRET_ACCESS_KEY=x", NULL, false},
        {"HF_TOKEN=x", NULL, false},
        {"PATHOLOGY=x", NULL, false},
        {"PAT=x", NULL, false},
        {"=x", NULL, false},
        {"PATH", NULL, false},
        {"MY_SITE=x", "OTHER,MY_SITE", true},
        {"MY_SITE=x", "MY_*", true},
        {"MY_SITE=x", "MY_", false},
        {"MY_SITE=x", ",,", false},
        {"MY_SITE=x", "*", true},
        {"DTRUN_READY_FD=3", "*", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (dt_launch_env_keeps(cases[i].assignment, cases[i].also) != cases[i].kept)
            fail_msg("%s with %s", cases[i].assignment, cases[i].also);
}

static void test_the_names_that_a_recipe_refers_to(void **state)
{
    static const struct {
        const char *text, *names;
    } cases[] = {
        {"", ""},
        {NULL, ""},
        {"https://a/b", ""},
        {"https://a/${env:KEY}", "KEY"},
        {"${env:A}${env:B_2:-none}/${env:", "A,B_2"},
        {"${env:}", ""},
    };
    const char *names;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_launch_env_references(&names, cases[i].text, &arena);
        assert_string_equal(names, cases[i].names);
    }
}

static const char *value(const dt_launch_env *env, const char *name)
{
    const char *found = NULL;

    for (size_t i = 0; i < env->count; i++) {
        assert_non_null(strchr(env->items[i], '='));
        if (strncmp(env->items[i], name, strlen(name)) == 0 && env->items[i][strlen(name)] == '=') {
            assert_null(found); /* only once */
            found = env->items[i] + strlen(name) + 1;
        }
    }
    assert_null(env->items[env->count]);
    return found;
}

static dt_launch_env revive(bool deliberate)
{
    dt_launch_env env;

    assert_int_equal(
        dt_launch_env_for_revival(&env, folder, "/where/it/is", deliberate, &arena, &err), DT_OK);
    return env;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    unlink(path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void save_as_launch(const char *agent)
{
    clearenv();
    setenv("PATH", "/launch/bin", 1);
    setenv("HOME", "/launch", 1);
    setenv("XDG_STATE_HOME", "/launch/state", 1);
    setenv("SSH_AUTH_SOCK", agent, 1);
    setenv("HOOK", "secret", 1);
    setenv("TOKEN", "secret", 1);
    setenv("DTRUN_KEEP_ENV", "HOOK,LINES", 1); /* not even if listed in DTRUN_KEEP_ENV */
    setenv("LINES", "a\nb=c", 1);
    umask(027);
    assert_int_equal(chdir("/usr"), 0);
    assert_int_equal(dt_launch_env_save(folder, "https://a/${env:HOOK}", &err), DT_OK);
}

static void test_another_process_gets_what_the_launch_had(void **state)
{
    char path[128], ours[128];
    struct stat info;
    dt_launch_env env;
    dt_strbuf text;
    int fd, mine;

    snprintf(path, sizeof(path), "%s/agent", folder);
    snprintf(ours, sizeof(ours), "%s/mine", folder);
    fd = listen_at(path);
    mine = listen_at(ours);
    save_as_launch(path);

    clearenv(); /* as if started by another user, elsewhere */
    setenv("PATH", "/caller/bin", 1);
    setenv("SSH_AUTH_SOCK", ours, 1);
    setenv("TOKEN", "another", 1);
    umask(0);
    assert_int_equal(chdir("/"), 0);
    snprintf(path, sizeof(path), "%s/environment", folder);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    dt_strbuf_init(&text);
    assert_int_equal(dt_file_read(&text, path, 1 << 20, &err), DT_OK);
    assert_null(memmem(text.data, text.length, "secret", 6));
    dt_strbuf_release(&text);

    env = revive(false);
    assert_string_equal(value(&env, "PATH"), "/launch/bin");
    assert_string_equal(value(&env, "HOME"), "/launch");
    assert_string_equal(value(&env, "LINES"), "a\nb=c");
    assert_string_equal(value(&env, "XDG_STATE_HOME"), "/where/it/is");
    assert_null(value(&env, "HOOK"));
    assert_null(value(&env, "TOKEN"));
    assert_string_equal(env.directory, "/usr");
    assert_int_equal(env.umask, 027);

    setenv("HOOK", "from here", 1);
    env = revive(false);
    assert_string_equal(value(&env, "HOOK"), "from here");

    /* an ssh-agent of a later command is used only if that of the launch is gone */
    env = revive(true);
    assert_string_not_equal(value(&env, "SSH_AUTH_SOCK"), ours);
    close(fd);
    env = revive(false);
    assert_string_not_equal(value(&env, "SSH_AUTH_SOCK"), ours);
    env = revive(true);
    assert_string_equal(value(&env, "SSH_AUTH_SOCK"), ours);
    close(mine);
    env = revive(true);
    assert_string_not_equal(value(&env, "SSH_AUTH_SOCK"), ours);
}

static void test_a_run_without_it_and_one_that_is_damaged(void **state)
{
    char path[128];
    dt_launch_env env;

    snprintf(path, sizeof(path), "%s/environment", folder);
    unlink(path);
    assert_int_equal(dt_launch_env_for_revival(&env, folder, "/s", false, &arena, NULL),
                     DT_ERR_NOT_FOUND);
    assert_int_equal(dt_file_write_atomic(path, "no assignment\0X=1\0\0Y=2", 22, 0600, &err),
                     DT_OK);
    env = revive(true);
    assert_string_equal(value(&env, "X"), "1");
    assert_string_equal(value(&env, "Y"), "2");
    assert_int_equal(env.umask, -1);
    assert_null(env.directory);
    assert_int_equal(dt_file_write_atomic(path, "", 0, 0600, &err), DT_OK);
    env = revive(true);
    assert_string_equal(value(&env, "XDG_STATE_HOME"), "/where/it/is");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_matters_is_kept_and_secrets_are_not),
        cmocka_unit_test(test_the_names_that_a_recipe_refers_to),
        cmocka_unit_test(test_another_process_gets_what_the_launch_had),
        cmocka_unit_test(test_a_run_without_it_and_one_that_is_damaged),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
