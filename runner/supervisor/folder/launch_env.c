#include "runner/supervisor/folder/launch_env.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"

#define FILE_MAX_BYTES ((size_t)4 << 20)
#define DIRECTORY      "DTRUN_LAUNCH_DIRECTORY="
#define UMASK          "DTRUN_LAUNCH_UMASK="
#define SECRETS        "DTRUN_LAUNCH_SECRETS="

extern char **environ;

/* Variables to keep; a trailing star matches any rest. Keep in sync with docs/operations.md. */
static const char *const kept[] = {
    /* user and locale */
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "XDG_*",
    "DBUS_SESSION_BUS_ADDRESS",
    /* connections to nodes */
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "SSH_SK_PROVIDER",
    "KRB5CCNAME",
    "KRB5_CONFIG",
    "SLURM_*",
    "SQUEUE_*",
    "SBATCH_*",
    "MUNGE_*",
    /* downloads */
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    /* inherited by ranks on this machine */
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "CUDA_*",
    "CUDNN_*",
    "CUBLAS_*",
    "NVIDIA_*",
    "NCCL_*",
    "GLOO_*",
    "UCX_*",
    "FI_*",
    "OMP_*",
    "GOMP_*",
    "KMP_*",
    "DNNL_*",
    "ONEDNN_*",
    "MALLOC_*",
    "GLIBC_TUNABLES",
    "UV_THREADPOOL_SIZE",
    "ASAN_OPTIONS",
    "UBSAN_OPTIONS",
    "TSAN_OPTIONS",
    "LSAN_OPTIONS",
    /* dtrun's own, except those that are set for each process */
    "DTRUN_AGENT",
    "DTRUN_ENGINE",
    "DTRUN_REACH",
    "DTRUN_LOG",
    "DTRUN_CPU_ISA",
    "DTRUN_KEEP_ENV",
    "DTRUN_ATTENTION",
    "DTRUN_CACHE_QUOTA",
    "DTRUN_LOG_QUOTA",
    "DTRUN_TEST_TIMES",
};

static bool matches(const char *pattern, size_t length, const char *name, size_t name_length)
{
    if (length > 0 && pattern[length - 1] == '*')
        return name_length >= length - 1 && memcmp(pattern, name, length - 1) == 0;
    return length == name_length && memcmp(pattern, name, length) == 0;
}

/* True if `name` is in the comma-separated list. */
static bool is_listed(const char *list, const char *name, size_t name_length)
{
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ",");

        if (length > 0 && matches(list, length, name, name_length))
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

/* True if the value is a proxy URL with a user name or password. */
static bool has_password(const char *name, size_t name_length, const char *value)
{
    return name_length > 6 && strncasecmp(name + name_length - 6, "_proxy", 6) == 0 &&
           strchr(value, '@') != NULL;
}

bool dt_launch_env_keeps(const char *assignment, const char *also)
{
    size_t length = strcspn(assignment, "=");

    if (length == 0 || assignment[length] == '\0' ||
        has_password(assignment, length, assignment + length + 1))
        return false;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (matches(kept[i], strlen(kept[i]), assignment, length))
            return true;
    return strncmp(assignment, "DTRUN_", 6) != 0 && is_listed(also, assignment, length);
}

void dt_launch_env_references(const char **out, const char *text, dt_arena *arena)
{
    static const char opening[] = "${env:";
    dt_strbuf names;

    dt_strbuf_init(&names);
    while (text != NULL && (text = strstr(text, opening)) != NULL) {
        size_t length;

        text += strlen(opening);
        length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
        if (length == 0)
            continue;
        if (names.length > 0)
            dt_strbuf_add_char(&names, ',');
        dt_strbuf_add(&names, text, length);
    }
    *out = dt_arena_strdup(arena, names.data);
    dt_strbuf_release(&names);
}

const char *dt_launch_env_text(const char *also, const dt_string_list *env, dt_arena *arena)
{
    const char *text;
    dt_strbuf all;

    dt_strbuf_init(&all);
    dt_strbuf_add_str(&all, also);
    for (int64_t i = 0; i < env->count; i++)
        dt_strbuf_add_fmt(&all, " %s", env->items[i]);
    text = dt_arena_strdup(arena, all.data);
    dt_strbuf_release(&all);
    return text;
}

/* --- the file */

static void add_item(dt_strbuf *out, const char *front, const char *value)
{
    dt_strbuf_add_fmt(out, "%s%s", front, value);
    dt_strbuf_add_char(out, '\0');
}

static const char *path_in(const char *folder, dt_arena *arena)
{
    return dt_arena_printf(arena, "%s/environment", folder);
}

/* Writes the items that are not variables. */
static void begin_file(dt_strbuf *out, const char *directory, int mask, const char *secrets)
{
    char text[16];

    if (directory != NULL)
        add_item(out, DIRECTORY, directory);
    snprintf(text, sizeof(text), "%04o", (unsigned)mask);
    if (mask >= 0)
        add_item(out, UMASK, text);
    add_item(out, SECRETS, secrets);
}

dt_status dt_launch_env_save(const char *folder, const char *text, dt_error *err)
{
    const char *path, *secrets, *also = getenv("DTRUN_KEEP_ENV");
    char directory[PATH_MAX];
    mode_t old = umask(077);
    dt_arena arena;
    dt_strbuf out;
    dt_status st;

    umask(old);
    dt_strbuf_init(&out);
    dt_arena_init(&arena, 0);
    path = path_in(folder, &arena);
    dt_launch_env_references(&secrets, text, &arena);
    begin_file(&out, getcwd(directory, sizeof(directory)), (int)old, secrets);
    for (char **item = environ; item != NULL && *item != NULL; item++)
        if (dt_launch_env_keeps(*item, NULL) ||
            (dt_launch_env_keeps(*item, also) && !is_listed(secrets, *item, strcspn(*item, "="))))
            add_item(&out, *item, "");
    DT_TRY(dt_file_write_atomic(path, out.data, out.length, 0600, err));
out:
    dt_strbuf_release(&out);
    dt_arena_release(&arena);
    return st;
}

/* If the item starts with `front`, sets *out to the rest and returns true. */
static bool take(const char **out, const char *item, const char *front)
{
    if (strncmp(item, front, strlen(front)) != 0)
        return false;
    *out = item + strlen(front);
    return true;
}

static void read_item(dt_launch_env *out, char *item)
{
    const char *mask;

    if (take(&out->directory, item, DIRECTORY) || take(&out->secrets, item, SECRETS))
        return;
    if (take(&mask, item, UMASK))
        out->umask = (int)strtol(mask, NULL, 8) & 0777;
    else if (strchr(item, '=') != NULL)
        out->items[out->count++] = item;
}

static dt_status launch_env_read(dt_launch_env *out, const char *folder, dt_arena *arena,
                                 dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    size_t count = 0, size;
    const char *path;
    dt_strbuf text;
    dt_status st;
    char *bytes;

    *out = (dt_launch_env){.umask = -1, .secrets = ""};
    dt_strbuf_init(&text);
    path = path_in(folder, arena);
    st = dt_file_read(&text, path, FILE_MAX_BYTES, &problem);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    size = text.length;
    for (size_t i = 0; i < size; i++)
        count += text.data[i] == '\0';
    bytes = dt_arena_alloc(arena, size + 1);
    /* room for two more items and one per secret; there are fewer secrets than bytes in their
     * names */
    out->items = dt_arena_alloc_array(arena, count + size / 2 + 4, sizeof(out->items[0]));
    memcpy(bytes, text.data, size);
    bytes[size] = '\0';
    for (size_t at = 0; at < size; at += strlen(bytes + at) + 1)
        read_item(out, bytes + at);
out:
    dt_strbuf_release(&text);
    return st;
}

/* --- for another supervisor */

static const char *value_of(const dt_launch_env *env, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], name, length) == 0 && env->items[i][length] == '=')
            return env->items[i] + length + 1;
    return NULL;
}

static void set(dt_launch_env *env, const char *name, const char *value, dt_arena *arena)
{
    char *item = dt_arena_printf(arena, "%s=%s", name, value);
    size_t length = strlen(name), i = 0;

    while (i < env->count &&
           (strncmp(env->items[i], name, length) != 0 || env->items[i][length] != '='))
        i++;
    env->items[i] = item;
    env->count += i == env->count ? 1 : 0;
}

/* Adds the secrets that are set in this process. */
static void add_secrets(dt_launch_env *env, dt_arena *arena)
{

    for (const char *at = env->secrets; *at != '\0';) {
        size_t length = strcspn(at, ",");
        char *name = dt_arena_printf(arena, "%.*s", (int)length, at);
        const char *value;

        value = getenv(name);
        if (value != NULL && value_of(env, name) == NULL)
            set(env, name, value, arena);
        at += length + (at[length] == ',');
    }
}

bool dt_launch_env_is_alive(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bool alive = false;
    int fd;

    if (socket_path == NULL || socket_path[0] == '\0' ||
        strlen(socket_path) >= sizeof(address.sun_path))
        return false;
    memcpy(address.sun_path, socket_path, strlen(socket_path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        alive = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN;
        close(fd);
    }
    return alive;
}

static void hand_over_agent(dt_launch_env *env, dt_arena *arena)
{
    const char *ours = getenv("SSH_AUTH_SOCK");

    if (dt_launch_env_is_alive(value_of(env, "SSH_AUTH_SOCK")) || !dt_launch_env_is_alive(ours))
        return;
    set(env, "SSH_AUTH_SOCK", ours, arena);
}

dt_status dt_launch_env_for_revival(dt_launch_env *out, const char *folder, const char *state_home,
                                    bool deliberate, dt_arena *arena, dt_error *err)
{
    dt_status st;

    DT_TRY(launch_env_read(out, folder, arena, err));
    set(out, "XDG_STATE_HOME", state_home, arena);
    add_secrets(out, arena);
    if (deliberate)
        hand_over_agent(out, arena);
    out->items[out->count] = NULL;
out:
    return st;
}

dt_status dt_launch_env_hand_over(const char *folder, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char *path, *before;
    struct stat info;
    dt_launch_env env;
    dt_arena arena;
    dt_strbuf out;
    dt_status st;

    if (stat(folder, &info) != 0 || info.st_uid != geteuid())
        return DT_OK; /* another user's run: the owner could not read a file written here */
    dt_strbuf_init(&out);
    dt_arena_init(&arena, 0);
    st = launch_env_read(&env, folder, &arena, &problem);
    if (st == DT_ERR_NOT_FOUND) {
        st = DT_OK;
        goto out;
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    before = value_of(&env, "SSH_AUTH_SOCK");
    hand_over_agent(&env, &arena);
    if (value_of(&env, "SSH_AUTH_SOCK") == before)
        goto out;
    begin_file(&out, env.directory, env.umask, env.secrets);
    for (size_t i = 0; i < env.count; i++)
        add_item(&out, env.items[i], "");
    path = path_in(folder, &arena);
    DT_TRY(dt_file_write_atomic(path, out.data, out.length, 0600, err));
out:
    dt_strbuf_release(&out);
    dt_arena_release(&arena);
    return st;
}
