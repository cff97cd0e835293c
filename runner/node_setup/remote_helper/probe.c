/* probe: prints facts of this machine as one JSON object. Unknown facts are left out. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/resources.h"
#include "base/version.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/glibc.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

static json_t *addresses(void)
{
    json_t *out = json_array();
    struct ifaddrs *list = NULL;

    if (getifaddrs(&list) != 0)
        return out;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        const void *bytes;
        bool link_local = false;
        int family;

        if (at->ifa_addr == NULL || (at->ifa_flags & IFF_UP) == 0)
            continue;
        family = at->ifa_addr->sa_family;
        if (family == AF_INET) {
            bytes = &((const struct sockaddr_in *)at->ifa_addr)->sin_addr;
        } else if (family == AF_INET6) {
            bytes = &((const struct sockaddr_in6 *)at->ifa_addr)->sin6_addr;
            link_local = IN6_IS_ADDR_LINKLOCAL(bytes);
        } else {
            continue;
        }
        if (inet_ntop(family, bytes, text, sizeof(text)) != NULL)
            json_array_append_new(out, json_pack("{s:s, s:s, s:b, s:b}", "interface", at->ifa_name,
                                                 "address", text, "loopback",
                                                 (at->ifa_flags & IFF_LOOPBACK) != 0, "link_local",
                                                 (int)link_local));
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
    json_object_set_new(out, "devices", dt_remote_helper_devices(driver, sizeof(driver)));
    if (driver[0] != '\0')
        json_object_set_new(out, "driver", json_string(driver));
    add_glibc(out);
    add_state(out);
    add_ssh_address(out);
    add_free(out, "cache_free_bytes", cache.data);
    dt_strbuf_reset(&text);
    dt_strbuf_add_fmt(&text, "%s/bundles/%s", cache.data, bundle);
    json_object_set_new(out, "bundle", json_boolean(utimensat(AT_FDCWD, text.data, NULL, 0) == 0));
    if (seen != NULL)
        json_object_set_new(out, "sees", json_boolean(dt_file_exists(seen)));
    touch_program(cache.data); /* so that prune.c sees them as used */
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
