#include "runner/agent/process/load.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"

#define FILE_BYTES    ((size_t)1 << 20)
#define THREADS_MOST  1024
#define PATH_BYTES    512
#define CPU_LIST_MOST 8 /* processors whose frequency is read */

typedef struct reader {
    const char *root;
    dt_strbuf text;
} reader;

/* Read a file into reader->text; false if it cannot be read. */
static bool read_text(reader *from, const char *path)
{
    char whole[PATH_BYTES];

    snprintf(whole, sizeof(whole), "%s%s", from->root, path);
    return dt_file_read(&from->text, whole, FILE_BYTES, NULL) == DT_OK;
}

static double read_number(reader *from, const char *path)
{
    return read_text(from, path) ? strtod(from->text.data, NULL) : -1;
}

/* Returns the number after `name` at the start of a line; -1 if there is none. */
static int64_t number_after(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, name, length) == 0)
            return strtoll(line + length, NULL, 10);
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return -1;
}

/* --- threads */

static void add_thread(dt_process_load *out, reader *from, pid_t pid, long thread)
{
    char path[PATH_BYTES];
    double run, delay;

    snprintf(path, sizeof(path), "/proc/%d/task/%ld/schedstat", (int)pid, thread);
    if (!read_text(from, path) || sscanf(from->text.data, "%lf %lf", &run, &delay) != 2)
        return;
    out->run_seconds = (out->run_seconds < 0 ? 0 : out->run_seconds) + run * 1e-9;
    out->delay_seconds = (out->delay_seconds < 0 ? 0 : out->delay_seconds) + delay * 1e-9;
    if (thread == pid) {
        out->first_run_seconds = run * 1e-9;
        out->first_delay_seconds = delay * 1e-9;
    }
}

static bool add_threads(dt_process_load *out, reader *from, pid_t pid)
{
    struct dirent *entry;
    char path[PATH_BYTES];
    int threads = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/proc/%d/task", from->root, (int)pid);
    dir = opendir(path);
    if (dir == NULL)
        return false;
    while ((entry = readdir(dir)) != NULL && threads < THREADS_MOST)
        if (isdigit((unsigned char)entry->d_name[0])) {
            add_thread(out, from, pid, strtol(entry->d_name, NULL, 10));
            threads++;
        }
    closedir(dir);
    return true;
}

/* --- the processors that the process may use */

typedef struct processors {
    bool may[DT_LOAD_PROCESSORS];
} processors;

/* Parse "0-3,7". */
static void parse_list(processors *out, const char *text)
{
    while (isdigit((unsigned char)*text)) {
        char *end;
        long first = strtol(text, &end, 10), last = first;

        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long i = first; i <= last && i < DT_LOAD_PROCESSORS; i++)
            out->may[i] = true;
        text = *end == ',' ? end + 1 : end;
    }
}

static void read_allowed(dt_process_load *out, processors *list, reader *from, pid_t pid)
{
    static const char name[] = "\nCpus_allowed_list:\t";
    char path[PATH_BYTES];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (!read_text(from, path) || (at = strstr(from->text.data, name)) == NULL)
        return;
    at += sizeof(name) - 1;
    snprintf(out->processors, sizeof(out->processors), "%.*s", (int)strcspn(at, "\n"), at);
    parse_list(list, at);
}

/* The lines "cpuN user nice system idle iowait irq softirq steal ..." of /proc/stat. */
static void read_busy(dt_process_load *out, processors *list, reader *from)
{
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK), busy = 0, stolen = 0;
    int count = 0;

    if (!read_text(from, "/proc/stat"))
        return;
    for (char *line = from->text.data; line != NULL && strncmp(line, "cpu", 3) == 0;) {
        double user, nice, system, idle, wait, irq, softirq, steal = 0;
        int number;

        if (!isdigit((unsigned char)line[3])) {
            /* "cpu  1 2 ..." sums all processors: 1 is a time, not the number of a processor */
        } else if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", &number, &user, &nice,
                          &system, &idle, &wait, &irq, &softirq, &steal) >= 8 &&
                   number >= 0 && number < DT_LOAD_PROCESSORS && list->may[number]) {
            busy += user + nice + system + irq + softirq;
            stolen += steal;
            count++;
        } else if (sscanf(line, "cpu%d", &number) == 1 && number >= 0 &&
                   number < DT_LOAD_PROCESSORS) {
            list->may[number] = false; /* not one of ours, or offline */
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    if (count == 0)
        return;
    out->processor_count = count;
    out->busy_seconds = busy * tick;
    out->stolen_seconds = stolen * tick;
}

static void read_frequencies(dt_process_load *out, const processors *list, reader *from)
{
    static const char folder[] = "/sys/devices/system/cpu";
    double now = 0, most = 0, heat = 0;
    int seen = 0, heated = 0;

    for (int i = 0; i < DT_LOAD_PROCESSORS && seen < CPU_LIST_MOST; i++) {
        char path[PATH_BYTES];
        double khz, khz_most, stops;

        if (!list->may[i])
            continue;
        snprintf(path, sizeof(path), "%s/cpu%d/cpufreq/scaling_cur_freq", folder, i);
        khz = read_number(from, path);
        snprintf(path, sizeof(path), "%s/cpu%d/cpufreq/cpuinfo_max_freq", folder, i);
        khz_most = read_number(from, path);
        snprintf(path, sizeof(path), "%s/cpu%d/thermal_throttle/core_throttle_count", folder, i);
        stops = read_number(from, path);
        if (stops >= 0) {
            heat += stops;
            heated++;
        }
        if (khz <= 0 || khz_most <= 0)
            break;
        now += khz;
        most += khz_most;
        seen++;
    }
    if (seen > 0) {
        out->mhz = now / seen / 1e3;
        out->mhz_most = most / seen / 1e3;
    }
    if (heated > 0)
        out->heat_stops = (int64_t)heat;
}

/* --- control group and disk */

static void read_limit(dt_process_load *out, reader *from, pid_t pid)
{
    char path[PATH_BYTES], group[PATH_BYTES / 2];
    int64_t microseconds;
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (!read_text(from, path) || (at = strstr(from->text.data, "0::")) == NULL)
        return;
    snprintf(group, sizeof(group), "%.*s", (int)strcspn(at + 3, "\n"), at + 3);
    for (;;) { /* the limit can be one of a group above */
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.stat", strcmp(group, "/") ? group : "");
        microseconds =
            read_text(from, path) ? number_after(from->text.data, "throttled_usec ") : -1;
        if (microseconds > 0 || (microseconds == 0 && out->limited_seconds < 0))
            out->limited_seconds = (double)microseconds * 1e-6;
        if (microseconds > 0 || strrchr(group, '/') == NULL || group[1] == '\0')
            return;
        *strrchr(group, '/') = '\0';
        if (group[0] == '\0')
            return;
    }
}

static void read_disk(dt_process_load *out, reader *from, pid_t pid)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
    if (!read_text(from, path))
        return;
    out->read_bytes = number_after(from->text.data, "read_bytes: ");
    out->written_bytes = number_after(from->text.data, "write_bytes: ");
}

bool dt_process_load_read(dt_process_load *out, pid_t pid, const char *root)
{
    reader from = {.root = root};
    processors list = {{false}};
    bool found;

    *out = (dt_process_load){.run_seconds = -1,
                             .delay_seconds = -1,
                             .first_run_seconds = -1,
                             .first_delay_seconds = -1,
                             .limited_seconds = -1,
                             .read_bytes = -1,
                             .written_bytes = -1,
                             .busy_seconds = -1,
                             .stolen_seconds = -1,
                             .mhz = -1,
                             .mhz_most = -1,
                             .heat_stops = -1};
    dt_strbuf_init(&from.text);
    found = add_threads(out, &from, pid);
    if (found) {
        read_allowed(out, &list, &from, pid);
        read_busy(out, &list, &from);
        read_frequencies(out, &list, &from);
        read_limit(out, &from, pid);
        read_disk(out, &from, pid);
    }
    dt_strbuf_release(&from.text);
    return found;
}

json_t *dt_process_load_json(const dt_process_load *load)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:s, s:i, s:f, s:f, s:f, s:f, s:I}",
                     "run_seconds", load->run_seconds, "delay_seconds", load->delay_seconds,
                     "first_run_seconds", load->first_run_seconds, "first_delay_seconds",
                     load->first_delay_seconds, "limited_seconds", load->limited_seconds,
                     "read_bytes", (json_int_t)load->read_bytes, "written_bytes",
                     (json_int_t)load->written_bytes, "processors", load->processors,
                     "processor_count", load->processor_count, "busy_seconds", load->busy_seconds,
                     "stolen_seconds", load->stolen_seconds, "mhz", load->mhz, "mhz_most",
                     load->mhz_most, "heat_stops", (json_int_t)load->heat_stops);
}

void dt_process_sample_read(dt_process_sample *out, pid_t pid, const char *root)
{
    reader from = {.root = root};
    char path[PATH_BYTES];
    const char *close_paren;

    *out = (dt_process_sample){.state = '?'};
    dt_strbuf_init(&from.text);
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)pid);
    if (read_text(&from, path) && (close_paren = strrchr(from.text.data, ')')) != NULL &&
        close_paren[1] == ' ')
        out->state = close_paren[2];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", (int)pid, (int)pid);
    if (read_text(&from, path) && strcmp(from.text.data, "0") != 0)
        snprintf(out->wchan, sizeof(out->wchan), "%.*s",
                 (int)strspn(from.text.data, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789_."),
                 from.text.data);
    dt_strbuf_release(&from.text);
}

/* --- the network of a node */

static bool is_device(const char *interface, const char *root)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "%s/sys/class/net/%s/device", root, interface);
    return access(path, F_OK) == 0;
}

/* Adds the interfaces of /proc/net/dev, two lines of headings first. devices: only those that are devices, below
 * this root; NULL: all but the loopback. Returns whether there was one. */
static bool add_interfaces(double *received, double *sent, const char *text, const char *devices)
{
    bool any = false;

    for (const char *line = text; line != NULL && *line != '\0';) {
        double in, out;
        char name[32];

        if (sscanf(line, " %31[^:]: %lf %*f %*f %*f %*f %*f %*f %*f %lf", name, &in, &out) == 3 &&
            strcmp(name, "lo") != 0 && (devices == NULL || is_device(name, devices))) {
            *received += in;
            *sent += out;
            any = true;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return any;
}

/* Returns the TCP counter of /proc/net/snmp: a line of names, then a line of numbers. */
static double tcp_counter(const char *text, const char *wanted)
{
    const char *names = strstr(text, "Tcp: "), *numbers;

    numbers = names != NULL ? strstr(names + 5, "Tcp: ") : NULL;
    if (numbers == NULL)
        return -1;
    names += 5;
    numbers += 5;
    while (*names != '\n' && *names != '\0') {
        size_t length = strcspn(names, " \n");

        if (length == strlen(wanted) && strncmp(names, wanted, length) == 0)
            return strtod(numbers, NULL);
        names += length;
        names += *names == ' ' ? 1 : 0;
        numbers += strcspn(numbers, " \n");
        numbers += *numbers == ' ' ? 1 : 0;
    }
    return -1;
}

json_t *dt_network_load_json(const char *root)
{
    double received = 0, sent = 0, segments = -1, again = -1;
    reader from = {.root = root};

    dt_strbuf_init(&from.text);
    if (read_text(&from, "/proc/net/dev"))
        add_interfaces(&received, &sent, from.text.data, NULL);
    else
        received = sent = -1;
    if (read_text(&from, "/proc/net/snmp")) {
        segments = tcp_counter(from.text.data, "OutSegs");
        again = tcp_counter(from.text.data, "RetransSegs");
    }
    dt_strbuf_release(&from.text);
    return json_pack("{s:f, s:f, s:f, s:f}", "received_bytes", received, "sent_bytes", sent,
                     "sent_segments", segments, "resent_segments", again);
}

bool dt_network_bytes(double *received, double *sent, const char *root)
{
    reader from = {.root = root};
    bool known;

    *received = *sent = 0;
    dt_strbuf_init(&from.text);
    known = read_text(&from, "/proc/net/dev");
    if (known && !add_interfaces(received, sent, from.text.data, root))
        add_interfaces(received, sent, from.text.data, NULL);
    dt_strbuf_release(&from.text);
    return known;
}
