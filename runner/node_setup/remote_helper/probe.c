/* probe: facts of this machine: devices, whether a process outlives the login that started it, and
 * everything else as one JSON object. */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/resources.h"
#include "base/version.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/glibc.h"
#include "runner/node_setup/remote_helper/gpu_claims.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

/* devices: lists the NVIDIA GPUs that nvidia-smi reports; if it fails, those in the driver's files,
 * which do not have the memory sizes:
 *
 *   /proc/driver/nvidia/version
 *       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  ..."
 *   /proc/driver/nvidia/gpus/BUS/information
 *       "Model: \t\t NVIDIA H100 80GB HBM3"
 */

#define ASK_SECONDS  6.0 /* without persistence mode nvidia-smi first loads the driver */
#define ANSWER_BYTES ((size_t)64 << 10)
#define FILE_BYTES   ((size_t)64 << 10)
#define DRIVER       "/proc/driver/nvidia"

/* Runs a program and appends its stdout; false if it cannot be run, fails or takes too long. */
static bool ask(dt_strbuf *out, const char *const *argv)
{
    int code;

    return dt_child_run(
               &code,
               &(dt_child_call){
                   .argv = argv, .out = out, .most_bytes = ANSWER_BYTES, .seconds = ASK_SECONDS},
               NULL) == DT_OK &&
           code == 0;
}

/* Parses a line of nvidia-smi, "535.104.05, 81559, 80000, NVIDIA H100 80GB HBM3": driver, total and
 * free MiB, name. */
static void add_device(json_t *devices, char *line, char *driver, size_t size)
{
    char *field[4] = {line, NULL, NULL, NULL};

    for (int i = 1; i < 4; i++) {
        char *comma = strchr(field[i - 1], ',');

        if (comma == NULL)
            return;
        *comma = '\0';
        field[i] = comma + 1 + strspn(comma + 1, " ");
    }
    snprintf(driver, size, "%s", field[0]);
    json_array_append_new(devices,
                          json_pack("{s:s, s:I, s:I}", "name", field[3], "memory_bytes",
                                    (json_int_t)strtoll(field[1], NULL, 10) << 20, "free_bytes",
                                    (json_int_t)strtoll(field[2], NULL, 10) << 20));
}

/* Copies the first word that is a number with a point, such as "535.104.05". */
static void read_driver_version(char *driver, size_t size)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    (void)dt_file_read(&text, DRIVER "/version", FILE_BYTES, NULL);
    for (const char *word = text.data; *word != '\0'; word += strspn(word, " \t\n")) {
        size_t length = strcspn(word, " \t\n");

        if (isdigit((unsigned char)*word) && memchr(word, '.', length) != NULL) {
            snprintf(driver, size, "%.*s", (int)length, word);
            break;
        }
        word += length;
    }
    dt_strbuf_release(&text);
}

/* Adds a device for each folder in gpus/: one per GPU that this machine, or container, may use. */
static void add_driver_files(json_t *devices)
{
    static const char model[] = "Model:";
    DIR *gpus = opendir(DRIVER "/gpus");
    struct dirent *entry;
    dt_strbuf path, text;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    while (gpus != NULL && (entry = readdir(gpus)) != NULL) {
        char *name, *end;

        if (entry->d_name[0] == '.')
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, DRIVER "/gpus/%s/information", entry->d_name);
        if (dt_file_read(&text, path.data, FILE_BYTES, NULL) != DT_OK)
            continue;
        name = strstr(text.data, model);
        name = name != NULL ? name + sizeof(model) - 1 : text.data + text.length;
        name += strspn(name, " \t");
        end = name + strcspn(name, "\n");
        *end = '\0';
        json_array_append_new(devices,
                              json_pack("{s:s}", "name", *name != '\0' ? name : "NVIDIA GPU"));
    }
    if (gpus != NULL)
        closedir(gpus);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
}

/* Returns an array of {name, memory_bytes, free_bytes}, or of {name} if nvidia-smi fails, and the driver's
 * version or "". */
static json_t *remote_helper_devices(char *driver, size_t size)
{
    static const char *const argv[] = {"nvidia-smi",
                                       "--query-gpu=driver_version,memory.total,memory.free,name",
                                       "--format=csv,noheader,nounits", NULL};
    json_t *devices = json_array();
    dt_strbuf text;

    driver[0] = '\0';
    dt_strbuf_init(&text);
    if (dt_file_exists(DRIVER "/version")) {
        snprintf(driver, size, "unknown");
        read_driver_version(driver, size);
        if (ask(&text, argv))
            for (char *line = text.data, *next; line != NULL && line[0] != '\0'; line = next) {
                next = strchr(line, '\n');
                if (next != NULL)
                    *next++ = '\0';
                add_device(devices, line, driver, size);
            }
        if (json_array_size(devices) == 0)
            add_driver_files(devices);
    }
    dt_strbuf_release(&text);
    return devices;
}

/* leftover: tests whether a process outlives the login that started it, as an agent must.
 *
 * leave starts a process that is detached like an agent, and prints "PID START". look, in another
 * login, watches this process for a while, prints "alive" or "gone", and ends it.
 */

#define LIFE_SECONDS \
    120 /* longer than a slow login; the process exits by then if it is not ended */
#define LOOK_SECONDS 1.5 /* a session's processes are killed after its connection closes */
#define WAIT_SECONDS 0.05

/* Waits in a grandchild. Its parent started a session and exited, so that init is its parent. */
static void stay(int report)
{
    int nothing = open("/dev/null", O_RDWR);
    dt_proc_stat stat;

    if (nothing < 0 || !dt_proc_stat_read(&stat, getpid()))
        _exit(1);
    dprintf(report, "%d %llu\n", (int)getpid(), (unsigned long long)stat.start_ticks);
    for (int i = 0; i < 3; i++)
        dup2(nothing, i);
    close(report);
    alarm(LIFE_SECONDS);
    for (;;)
        pause();
}

dt_status dt_remote_helper_leave(dt_error *err)
{
    char line[64] = "";
    dt_status st = DT_OK;
    int ends[2];
    ssize_t got;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make a pipe: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        if (setsid() < 0 || (pid = fork()) < 0)
            _exit(1);
        if (pid == 0)
            stay(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    got = pid > 0 ? read(ends[0], line, sizeof(line) - 1) : -1;
    if (got <= 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot start a process: %s",
                     pid < 0 ? strerror(errno) : "it ended at once");
    else
        fputs(line, stdout);
    close(ends[0]);
    return st;
}

dt_status dt_remote_helper_look(const char *pid_text, const char *start_text)
{
    const double until = dt_clock_monotonic_seconds() + LOOK_SECONDS;
    uint64_t start = strtoull(start_text, NULL, 10);
    long pid = strtol(pid_text, NULL, 10);
    dt_proc_stat stat;
    bool alive;

    for (;;) {
        alive = pid > 1 && dt_proc_stat_read(&stat, pid) && stat.start_ticks == start &&
                stat.state != 'Z';
        if (!alive || dt_clock_monotonic_seconds() > until)
            break;
        dt_clock_sleep_seconds(WAIT_SECONDS);
    }
    if (alive)
        (void)kill((pid_t)pid, SIGKILL);
    puts(alive ? "alive" : "gone");
    return DT_OK;
}

static json_t *addresses(void)
{
    json_t *out = json_array();
    struct ifaddrs *list = NULL;

    if (getifaddrs(&list) != 0)
        return out;
    for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        const void *bytes;
        bool link_local = false;
        int family;

        if (entry->ifa_addr == NULL || (entry->ifa_flags & IFF_UP) == 0)
            continue;
        family = entry->ifa_addr->sa_family;
        if (family == AF_INET) {
            bytes = &((const struct sockaddr_in *)entry->ifa_addr)->sin_addr;
        } else if (family == AF_INET6) {
            bytes = &((const struct sockaddr_in6 *)entry->ifa_addr)->sin6_addr;
            link_local = IN6_IS_ADDR_LINKLOCAL(bytes);
        } else {
            continue;
        }
        if (inet_ntop(family, bytes, text, sizeof(text)) != NULL)
            json_array_append_new(out, json_pack("{s:s, s:s, s:b, s:b}", "interface",
                                                 entry->ifa_name, "address", text, "loopback",
                                                 (entry->ifa_flags & IFF_LOOPBACK) != 0,
                                                 "link_local", (int)link_local));
    }
    freeifaddrs(list);
    return out;
}

/* Appends an identity: the boot id and the network namespace. Two answers with the same identity
 * come from one machine with two names. A container with its own network counts as a separate
 * machine. */
static void identity(dt_strbuf *out)
{
    char space[64];
    ssize_t length = readlink("/proc/self/ns/net", space, sizeof(space));
    dt_strbuf boot;

    dt_strbuf_init(&boot);
    if (dt_file_read(&boot, "/proc/sys/kernel/random/boot_id", 256, NULL) == DT_OK) {
        boot.data[strcspn(boot.data, "\n")] = '\0';
        dt_strbuf_add_fmt(out, "%s %.*s", boot.data, (int)(length > 0 ? length : 0), space);
    }
    dt_strbuf_release(&boot);
}

static void add_glibc(json_t *out)
{
    char version[DT_GLIBC_SIZE];

    if (dt_glibc_here(version) == DT_OK)
        json_object_set_new(out, "glibc", json_string(version));
}

/* Updates the time of this program if it is CACHE/agents/HASH, but not of one in an installation or a build. */
static void touch_program(const char *cache)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[length > 0 ? length : 0] = '\0';
    if (strncmp(path, cache, strlen(cache)) == 0 &&
        strncmp(path + strlen(cache), "/agents/", strlen("/agents/")) == 0)
        (void)utimensat(AT_FDCWD, path, NULL, 0);
}

/* Adds the free bytes of the file system that `path` is on, or would be on. */
static void add_free(json_t *out, const char *key, const char *path)
{
    char at[PATH_MAX];
    struct statvfs info;

    snprintf(at, sizeof(at), "%s", path);
    while (statvfs(at, &info) != 0) {
        char *slash = strrchr(at, '/');

        if (slash == NULL || slash == at)
            return;
        *slash = '\0';
    }
    json_object_set_new(out, key, json_integer((json_int_t)(info.f_bavail * info.f_frsize)));
}

/* Adds the folder in which runs keep their state on this machine, and its free space. */
static void add_state(json_t *out)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    dt_strbuf path;

    dt_strbuf_init(&path);
    if (state != NULL && state[0] == '/')
        dt_strbuf_add_fmt(&path, "%s/dtrun", state);
    else if (home != NULL && home[0] == '/')
        dt_strbuf_add_fmt(&path, "%s/.local/state/dtrun", home);
    if (path.length > 0) {
        json_object_set_new(out, "state", json_string(path.data));
        add_free(out, "state_free_bytes", path.data);
    }
    dt_strbuf_release(&path);
}

/* Adds both ends of the ssh connection. Other nodes can probably reach the server's address too.
 * SSH_CONNECTION is "CLIENT PORT SERVER PORT". */
static void add_ssh_address(json_t *out)
{
    const char *text = getenv("SSH_CONNECTION");
    char client[64], server[64];

    if (text != NULL && sscanf(text, "%63s %*s %63s", client, server) == 2) {
        json_object_set_new(out, "ssh_client", json_string(client));
        json_object_set_new(out, "ssh_address", json_string(server));
    }
}

static dt_status own_digest(char *hex, dt_error *err)
{
    dt_strbuf bytes;
    dt_status st;

    dt_strbuf_init(&bytes);
    st = dt_file_read(&bytes, "/proc/self/exe", (size_t)64 << 20, err);
    if (st == DT_OK)
        dt_digest_of(hex, bytes.data, bytes.length);
    dt_strbuf_release(&bytes);
    return st;
}

dt_status dt_remote_helper_probe(const char *bundle, const char *seen, dt_error *err)
{
    char driver[64], host[256] = "", hex[DT_DIGEST_SIZE];
    dt_strbuf cache, text;
    struct utsname system;
    int64_t free_bytes;
    json_t *out = NULL;
    dt_status st = DT_OK;

    dt_strbuf_init(&cache);
    dt_strbuf_init(&text);
    DT_TRY(dt_remote_helper_cache(&cache, err));
    DT_TRY(own_digest(hex, err));
    if (uname(&system) != 0)
        DT_THROW(err, DT_ERR_IO, "uname: %s", strerror(errno));
    gethostname(host, sizeof(host) - 1);
    out = json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:s, s:I}", "probe", 1, "version", DT_VERSION,
                    "agent", hex, "host", host, "arch", system.machine, "cores",
                    (json_int_t)dt_resources_cores(), "cache", cache.data, "uid",
                    (json_int_t)getuid());
    if (out == NULL)
        DT_THROW(err, DT_ERR_CORRUPT, "this machine's names are not UTF-8");
    identity(&text);
    json_object_set_new(out, "identity", json_string(text.data));
    if (dt_resources_memory(&free_bytes, NULL) == DT_OK)
        json_object_set_new(out, "memory_free_bytes", json_integer(free_bytes));
    json_object_set_new(out, "addresses", addresses());
    json_object_set_new(out, "devices", remote_helper_devices(driver, sizeof(driver)));
    if (driver[0] != '\0')
        json_object_set_new(out, "driver", json_string(driver));
    if (dt_gpus_are_claimed())
        json_object_set_new(out, "gpu_uses", dt_gpu_uses());
    add_glibc(out);
    add_state(out);
    add_ssh_address(out);
    add_free(out, "cache_free_bytes", cache.data);
    dt_strbuf_reset(&text);
    dt_strbuf_add_fmt(&text, "%s/bundles/%s", cache.data, bundle);
    json_object_set_new(out, "bundle", json_boolean(utimensat(AT_FDCWD, text.data, NULL, 0) == 0));
    if (seen != NULL)
        json_object_set_new(out, "sees", json_boolean(dt_file_exists(seen)));
    touch_program(cache.data); /* so that cache.c sees them as used */
    json_object_set_new(out, "time_ms", json_integer(dt_clock_wall_ms()));
    dt_strbuf_reset(&text);
    dt_json_write(&text, out);
    puts(text.data);
out:
    json_decref(out);
    dt_strbuf_release(&cache);
    dt_strbuf_release(&text);
    return st;
}
