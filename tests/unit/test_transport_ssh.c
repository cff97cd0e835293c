/* Words through every login shell, errors of ssh, and one command on a "node": ssh is a script
 * that is first in PATH, the shells are real. */
#include <setjmp.h>
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
#include "runner/transport/remote.h"
#include "runner/transport/transport.h"
#include "runner/transport/transport_int.h"

static char root[] = "/tmp/dtrun-reach.XXXXXX";

static const char *const nasty[] = {"/usr/bin/printf",
                                    "%s|",
                                    "two words",
                                    "it's",
                                    "\"double\"",
                                    "line\nbreak",
                                    "$(touch pwned)",
                                    "`touch pwned`",
                                    "$HOME !! !x",
                                    "back\\slash\\\\ \\'",
                                    "--dash",
                                    "-",
                                    "*",
                                    "~root",
                                    "",
                                    "a=b",
                                    "#x",
                                    "%s%n\\101",
                                    "{a,b}",
                                    "\xc3\xa9\xff\x01\t;&|<>()",
                                    "=ls",
                                    "ends\n",
                                    NULL};

/* Writes the script that replaces ssh: it passes the last word of its command line to
 * $LOGIN_SHELL, as sshd would. With -G it prints nothing, or the file `config` next to it. */
static void write_ssh(const char *body)
{
    char path[64], text[1024];

    snprintf(path, sizeof(path), "%s/ssh", root);
    snprintf(text, sizeof(text),
             "#!/bin/sh\nif [ \"$1\" = -G ]; then\n"
             "    [ -e %s/config ] && exec /usr/bin/ssh -F %s/config \"$@\"\n    exit 1\nfi\n"
             "for last; do :; done\n%s\n",
             root, root, body);
    assert_int_equal(dt_file_write_atomic(path, text, strlen(text), 0755, NULL), DT_OK);
}

static int make_root(void **state)
{
    char path[512];

    assert_non_null(mkdtemp(root));
    setenv("DTRUN_TEST_TIMES", "0.01", 1); /* a refused connection is tried again for 0.3 s */
    snprintf(path, sizeof(path), "%s:%s", root, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("XDG_RUNTIME_DIR", root, 1);
    return chdir(root);
}

static int remove_root(void **state)
{
    return dt_file_remove_tree(root, NULL) == DT_OK ? 0 : -1;
}

static void test_words_arrive_as_they_are_through_every_login_shell(void **state)
{
    static const char *const shells[] = {"/bin/sh",  "/bin/bash", "/bin/dash", "/usr/bin/fish",
                                         "/bin/csh", "/bin/tcsh", "/bin/zsh",  "/bin/ksh"};
    dt_strbuf wanted, answer;
    int tried = 0, code;

    dt_strbuf_init(&wanted);
    dt_strbuf_init(&answer);
    for (size_t i = 2; nasty[i] != NULL; i++)
        dt_strbuf_add_fmt(&wanted, "%s|", nasty[i]);
    write_ssh("exec \"$LOGIN_SHELL\" -c \"$last\"");
    for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++) {
        dt_error err = DT_ERROR_INIT;

        if (access(shells[s], X_OK) != 0)
            continue;
        tried++;
        setenv("LOGIN_SHELL", shells[s], 1);
        if (dt_remote_ask(&answer, "gpu-a", nasty, NULL, 0, 4096, 10.0, &code, NULL, NULL, &err) !=
            DT_OK)
            fail_msg("%s: %s", shells[s], err.message);
        assert_int_equal(code, 0);
        if (strcmp(answer.data, wanted.data) != 0)
            fail_msg("%s: got\n%s\nwanted\n%s", shells[s], answer.data, wanted.data);
    }
    assert_true(tried >= 2);
    assert_false(dt_file_exists("pwned"));
    dt_strbuf_release(&wanted);
    dt_strbuf_release(&answer);
}

static void test_a_name_that_ssh_would_take_for_an_option_is_refused(void **state)
{
    static const char *const bad[] = {"-oProxyCommand=x", "",      "a b",  "a;b", "$(x)",
                                      "root@-x",          "root@", "a\nb", "a'b"};
    static const char *const good[] = {"gpu-a", "root@10.0.0.7", "[fe80::1%eth0]",
                                       "ssh://me@host:2222"};
    const dt_transport *transport;
    const char **argv, *const words[] = {"/bin/true", NULL};
    dt_error err = DT_ERROR_INIT;
    dt_arena arena;
    size_t n = 0;

    dt_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(dt_transport_find(&transport, bad[i], NULL), DT_ERR_UNSUPPORTED);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(dt_transport_find(&transport, good[i], NULL), DT_OK);
    assert_int_equal(transport->command(&argv, "gpu-a", words, &arena, &err), DT_OK);
    while (argv[n] != NULL)
        n++;
    assert_string_equal(argv[n - 3], "--");
    assert_string_equal(argv[n - 2], "gpu-a");
    dt_arena_release(&arena);
}

/* Finds the value of ControlPath in the command for a node. */
static void socket_of(char *out, size_t size, const char *node)
{
    const char *const words[] = {"/bin/true", NULL};
    static const char key[] = "ControlPath=";
    const dt_transport *transport;
    dt_error err = DT_ERROR_INIT;
    const char **argv;
    dt_arena arena;

    out[0] = '\0';
    dt_arena_init(&arena, 0);
    assert_int_equal(dt_transport_find(&transport, node, NULL), DT_OK);
    assert_int_equal(transport->command(&argv, node, words, &arena, &err), DT_OK);
    for (; *argv != NULL; argv++)
        if (strncmp(*argv, key, strlen(key)) == 0)
            snprintf(out, size, "%s", *argv + strlen(key));
    dt_arena_release(&arena);
    assert_true(out[0] == '/' && strlen(out) <= 107 - 17);
}

static void write_config(const char *jump_address)
{
    char text[512];

    snprintf(text, sizeof(text),
             "Host west\n HostName 192.0.2.1\n ProxyJump j1\n HostKeyAlias west\n"
             "Host east\n HostName 192.0.2.1\n ProxyJump j2\n HostKeyAlias east\n"
             "Host j1 j2\n HostName %s\n",
             jump_address);
    assert_int_equal(dt_file_write_atomic("config", text, strlen(text), 0600, NULL), DT_OK);
}

/* ssh's own %C is equal for both nodes: it includes neither the jump host nor the alias. */
static void test_nodes_that_end_elsewhere_do_not_share_a_connection(void **state)
{
    char west[128], east[128], again[128], by_url[128], moved[128];

    if (access("/usr/bin/ssh", X_OK) != 0)
        skip();
    write_ssh("exit 1");
    write_config("192.0.2.9");
    socket_of(west, sizeof(west), "west");
    socket_of(east, sizeof(east), "east");
    socket_of(again, sizeof(again), "west");
    socket_of(by_url, sizeof(by_url), "ssh://west:2222");
    assert_string_not_equal(west, east);
    assert_string_equal(west, again);
    assert_string_not_equal(west, by_url);
    write_config("192.0.2.10"); /* the alias of the jump host is now another machine */
    socket_of(moved, sizeof(moved), "west");
    assert_string_equal(west, moved); /* it counts for some seconds */
    dt_ssh_forget();
    socket_of(moved, sizeof(moved), "west");
    assert_string_not_equal(west, moved);
    assert_int_equal(unlink("config"), 0);
}

static void ask_expecting(const char *ssh, dt_status wanted, const char *part)
{
    const char *const words[] = {"/bin/echo", "hello", NULL};
    dt_error err = DT_ERROR_INIT;
    dt_strbuf answer;
    dt_status st;

    dt_strbuf_init(&answer);
    write_ssh(ssh);
    st = dt_remote_ask(&answer, "gpu-a", words, NULL, 0, 4096, 10.0, NULL, NULL, NULL, &err);
    if (st != wanted)
        fail_msg("%s: status %d, wanted %d: %s", ssh, st, wanted, err.message);
    if (strstr(st == DT_OK ? answer.data : err.message, part) == NULL)
        fail_msg("%s: '%s' lacks '%s'", ssh, st == DT_OK ? answer.data : err.message, part);
    if (st == DT_OK)
        assert_string_equal(answer.data, part);
    dt_strbuf_release(&answer);
}

static void test_a_banner_is_skipped_and_an_endless_one_is_an_error(void **state)
{
    ask_expecting("echo Welcome; echo; printf 'no newline'; exec sh -c \"$last\"", DT_OK,
                  "hello\n");
    ask_expecting("exec yes Welcome", DT_ERR_UNSUPPORTED, "prints without end");
    ask_expecting("echo 'This account is currently not available.'; exit 1", DT_ERR_UNSUPPORTED,
                  "currently not available");
    ask_expecting(
        "echo \"/root/.bashrc: fork: retry: Resource temporarily unavailable\" >&2; exit 254",
        DT_ERR_PEER, "cannot start processes: /root/.bashrc: fork: retry");
    ask_expecting("echo 'sh: 1: Cannot fork' >&2; exit 2", DT_ERR_PEER, "Cannot fork");
    ask_expecting("kill -TERM $$", DT_ERR_IO, "the local ssh was ended by SIGTERM");
    ask_expecting("eval \"$last\" & wait; kill -KILL $$", DT_OK, "hello\n");
    ask_expecting("exec sh -c 'echo; echo dtrun-begins-here; kill -KILL $$'", DT_ERR_IO,
                  "the local ssh was ended by SIGKILL");
    ask_expecting("echo; echo dtrun-begins-here; echo 'sh: 1: Cannot fork' >&2; exit 2",
                  DT_ERR_PEER, "cannot start processes: sh: 1: Cannot fork");
    ask_expecting("exit 1", DT_ERR_UNSUPPORTED, "a start-up file such as ~/.bashrc");
    ask_expecting("echo 'bad news' >&2; exec sh -c \"$last; exit 3\"", DT_OK, "hello\n");
    ask_expecting("eval \"$last\" & echo dtrun-begins-here; echo 'no such file' >&2; exit 3",
                  DT_ERR_PEER, "no such file");
}

/* sshd drops connections at random while it has too many that are not signed in. */
static void test_a_connection_that_is_refused_at_once_is_tried_again(void **state)
{
    static const char *const refusals[] = {
        "kex_exchange_identification: read: Connection reset by peer\nConnection reset by 10.0.0.1 "
        "port 22",
        "kex_exchange_identification: Connection closed by remote host\nConnection closed by "
        "10.0.0.1 port 22",
        "Connection reset by 10.0.0.1 port 22"};
    char script[1024];

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        snprintf(script, sizeof(script),
                 "echo x >>%s/tries\nif [ $(wc -l <%s/tries) -lt 4 ]; then\ncat >&2 "
                 "<<'END'\n%s\nEND\nexit 255\nfi\nrm %s/tries\nexec sh -c \"$last\"",
                 root, root, refusals[i], root);
        ask_expecting(script, DT_OK, "hello\n");
    }
    /* another reason is final at once */
    snprintf(script, sizeof(script),
             "echo x >>%s/tries\necho 'root@gpu-a: Permission denied (publickey).' >&2\nexit 255",
             root);
    ask_expecting(script, DT_ERR_PEER, "ssh-copy-id");
    snprintf(script, sizeof(script), "[ $(wc -l <%s/tries) = 1 ] && exec sh -c \"$last\"", root);
    ask_expecting(script, DT_OK, "hello\n");
}

static void test_every_error_of_ssh_has_a_remedy(void **state)
{
    static const struct {
        const char *says;
        dt_status status;
        const char *remedy;
        dt_contact contact;
    } cases[] = {
        {"Host key verification failed.", DT_ERR_PEER, "'ssh gpu-a'", DT_CONTACT_HOST},
        {"@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
         DT_ERR_UNSUPPORTED, "ssh-keygen -R", DT_CONTACT_HOST},
        {"root@gpu-a: Permission denied (publickey,password).", DT_ERR_PEER, "ssh-copy-id",
         DT_CONTACT_HOST},
        {"ssh: connect to host gpu-a port 22: Connection refused", DT_ERR_PEER, "sshd",
         DT_CONTACT_NONE},
        {"ssh: connect to host gpu-a port 22: No route to host", DT_ERR_PEER,
         "no route to host:", DT_CONTACT_NONE},
        {"ssh: connect to host gpu-a port 22: Connection timed out", DT_ERR_PEER, "switched on",
         DT_CONTACT_NONE},
        {"Connection timed out during banner exchange\nConnection to gpu-a port 22 timed out",
         DT_ERR_PEER, "overloaded", DT_CONTACT_HOST},
        {"ssh: Could not resolve hostname gpu-a: Name or service not known", DT_ERR_PEER,
         "spelling", DT_CONTACT_UNKNOWN},
        {"kex_exchange_identification: Connection closed by remote host\nConnection closed by "
         "10.0.0.1 port 22",
         DT_ERR_PEER, "MaxStartups", DT_CONTACT_HOST},
        {"/root/.ssh/config: line 3: Bad configuration option: foo\r\n/root/.ssh/config: "
         "terminating, 1 bad configuration options",
         DT_ERR_PEER, "~/.ssh/config", DT_CONTACT_UNKNOWN},
        {"Staff only. Permission denied (by law). Connection refused to others.\nroot@gpu-a: "
         "Permission denied (publickey).",
         DT_ERR_PEER, "(publickey)", DT_CONTACT_HOST},
        {"Note: Host key verification failed is what strangers see.\nssh: connect to host gpu-a "
         "port 22: "
         "Connection refused",
         DT_ERR_PEER, "sshd", DT_CONTACT_NONE},
        {"System is going down.\nConnection closed by 10.0.0.1 port 22", DT_ERR_PEER,
         "System is going down", DT_CONTACT_HOST},
        {"Warning: Permanently added 'gpu-a' to the list of known hosts.\nUnable to negotiate with "
         "10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa",
         DT_ERR_UNSUPPORTED, "Their offer: ssh-rsa", DT_CONTACT_HOST},
        {"kex_exchange_identification: banner line contains invalid characters\nbanner exchange: "
         "Connection to 10.0.0.1 port 80: invalid format",
         DT_ERR_PEER, "a program other than sshd", DT_CONTACT_HOST},
        {"channel 0: open failed: connect failed: No route to host\nstdio forwarding "
         "failed\nkex_exchange_identification: Connection closed by remote host\nConnection closed "
         "by UNKNOWN port 65535",
         DT_ERR_PEER, "jump host", DT_CONTACT_NONE},
        {"channel 0: open failed: administratively prohibited: open failed\nstdio forwarding "
         "failed\nConnection closed by UNKNOWN port 65535",
         DT_ERR_PEER, "AllowTcpForwarding", DT_CONTACT_UNKNOWN},
        {"root@jump: Permission denied (publickey).\nkex_exchange_identification: Connection "
         "closed "
         "by remote host\nConnection closed by UNKNOWN port 65535",
         DT_ERR_PEER, "root@jump: Permission denied (publickey)", DT_CONTACT_UNKNOWN},
        {"kex_exchange_identification: Connection closed by remote host\nConnection closed by "
         "UNKNOWN "
         "port 65535",
         DT_ERR_PEER, "'ssh gpu-a true'", DT_CONTACT_NONE},
        {"something else", DT_ERR_PEER, "something else", DT_CONTACT_NONE},
        {"", DT_ERR_PEER, "without a message", DT_CONTACT_NONE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char script[512];

        snprintf(script, sizeof(script), "cat >&2 <<'END'\n%s\nEND\nexit 255", cases[i].says);
        ask_expecting(script, cases[i].status, cases[i].remedy);
        ask_expecting(script, cases[i].status, "'gpu-a'");
        assert_int_equal(dt_ssh_error_contact(cases[i].says), cases[i].contact);
    }
}

/* The ssh that only checks whether the machine answers must not sign in. */
static void test_a_probe_returns_what_it_proved(void **state)
{
    static const struct {
        const char *signs_in, *knocks;
        dt_contact contact;
    } cases[] = {
        {"exit 0", "exec sleep 60", DT_CONTACT_COMMAND},
        {"echo 'Permission denied (publickey).' >&2; exit 255", "exit 255", DT_CONTACT_HOST},
        {"exec sleep 60", "echo 'debug1: Remote protocol version 2.0' >&2; exec sleep 60",
         DT_CONTACT_HOST}, /* a home directory that hangs */
        {"exit 127", "exit 255", DT_CONTACT_HOST},
        {"echo 'ssh: Could not resolve hostname gpu-a: x' >&2; exit 255", "exit 255",
         DT_CONTACT_UNKNOWN},
        {"echo 'ssh: connect to host gpu-a port 22: No route to host' >&2; exit 255", "exit 255",
         DT_CONTACT_NONE},
    };
    static const char *const words[] = {"/usr/bin/true", NULL};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char script[512];

        snprintf(script, sizeof(script),
                 "case \"$*\" in *' -O stop '*) exit 0 ;; *PreferredAuthentications=none*) %s ;; "
                 "esac\n%s",
                 cases[i].knocks, cases[i].signs_in);
        write_ssh(script);
        assert_int_equal(dt_contact_try("gpu-a", words), cases[i].contact);
    }
}

static void test_ten_connections_are_opened_at_once_and_no_more(void **state)
{
    int slots[DT_SLOT_COUNT], one_more;
    atomic_bool cancelled = true;

    for (int i = 0; i < DT_SLOT_COUNT; i++)
        assert_int_equal(dt_connection_slot_take(&slots[i], 0, NULL, NULL), DT_OK);
    assert_int_equal(dt_connection_slot_take(&one_more, 0, NULL, NULL), DT_ERR_TIMEOUT);
    assert_int_equal(dt_connection_slot_take(&one_more, 60, &cancelled, NULL), DT_ERR_BUSY);
    close(slots[3]);
    assert_int_equal(dt_connection_slot_take(&one_more, 0, NULL, NULL), DT_OK);
    close(one_more);
    for (int i = 0; i < DT_SLOT_COUNT; i++)
        if (i != 3)
            close(slots[i]);
}

/* If another user owns a folder, or its mode lets others in, the next folder is used. */
static void test_a_folder_for_sockets_that_others_can_enter_is_not_used(void **state)
{
    dt_error err = DT_ERROR_INIT;
    const char *folder, *other, *taken;
    dt_arena arena;
    struct stat info;
    char cache[64];

    dt_arena_init(&arena, 0);
    snprintf(cache, sizeof(cache), "%s/cache", root);
    setenv("XDG_CACHE_HOME", cache, 1);
    assert_int_equal(dt_connection_slots_folder(&folder, &arena, NULL), DT_OK);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(dt_connection_slots_folder(&other, &arena, &err), DT_OK);
    assert_string_not_equal(other, folder);
    assert_int_equal(stat(other, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(chmod(folder, 0700), 0);

    /* all folders that other users can take are taken: a user without a session folder, in a user namespace */
    if (geteuid() == 0) {
        snprintf(cache, sizeof(cache), "%s/theirs", root);
        setenv("XDG_CACHE_HOME", cache, 1);
        assert_int_equal(mkdir(cache, 0700), 0);
        assert_int_equal(chmod(root, 0755), 0);
        assert_int_equal(chown(cache, 54321, 54321), 0);
        assert_int_equal(mkdir("/tmp/dtrun-54321", 0700), 0); /* root's, not this user's */
        taken = "/tmp/dtrun-54321";
        unsetenv("XDG_RUNTIME_DIR");
        assert_int_equal(seteuid(54321), 0);
        assert_int_equal(dt_connection_slots_folder(&other, &arena, &err), DT_OK);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(rmdir(taken), 0);
        assert_int_equal(strncmp(other, cache, strlen(cache)), 0);
        setenv("XDG_RUNTIME_DIR", root, 1);
    }
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_arrive_as_they_are_through_every_login_shell),
        cmocka_unit_test(test_nodes_that_end_elsewhere_do_not_share_a_connection),
        cmocka_unit_test(test_a_name_that_ssh_would_take_for_an_option_is_refused),
        cmocka_unit_test(test_a_banner_is_skipped_and_an_endless_one_is_an_error),
        cmocka_unit_test(test_a_connection_that_is_refused_at_once_is_tried_again),
        cmocka_unit_test(test_every_error_of_ssh_has_a_remedy),
        cmocka_unit_test(test_a_probe_returns_what_it_proved),
        cmocka_unit_test(test_ten_connections_are_opened_at_once_and_no_more),
        cmocka_unit_test(test_a_folder_for_sockets_that_others_can_enter_is_not_used),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
