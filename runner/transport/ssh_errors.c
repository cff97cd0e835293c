#include "runner/transport/transport_int.h"

#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 200, COMPLAINT_BYTES = 8192 };

typedef struct row {
    const char *text;
    dt_status status;
    dt_contact contact; /* what the message proves about the machine */
    const char *what, *remedy;
} row;

/* The first row whose text is in a line of ssh counts; %s is the node's name. OpenSSH 8 and 9 print
 * these texts, and never translate them. */
static const row rows[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", DT_ERR_UNSUPPORTED, DT_CONTACT_HOST,
     "its host key has changed: the machine was reinstalled, or another machine answers",
     "ask its administrator; if the new key is right, 'ssh-keygen -R HOST' and connect once by "
     "hand"},
    {"REVOKED HOST KEY", DT_ERR_UNSUPPORTED, DT_CONTACT_HOST, "its host key is marked as revoked",
     "ask its administrator"},
    {"Host key verification failed", DT_ERR_PEER, DT_CONTACT_HOST, "its host key is not known here",
     "connect once by hand with 'ssh %s' and compare the fingerprint, or add the key to "
     "~/.ssh/known_hosts from a source that you trust"},
    {"Bad owner or permissions", DT_ERR_PEER, DT_CONTACT_UNKNOWN,
     "ssh refuses its own configuration", "'chmod go-w' the file that it names"},
    {"Bad configuration option", DT_ERR_PEER, DT_CONTACT_UNKNOWN,
     "ssh refuses its own configuration", "correct the line of ~/.ssh/config that it names"},
    {"terminating, ", DT_ERR_PEER, DT_CONTACT_UNKNOWN, "ssh refuses its own configuration",
     "correct the line of ~/.ssh/config that it names"},
    {"Too many authentication failures", DT_ERR_PEER, DT_CONTACT_HOST,
     "ssh offered too many keys before the right one",
     "name the key in ~/.ssh/config: IdentityFile, and IdentitiesOnly yes"},
    {"Permission denied (", DT_ERR_PEER, DT_CONTACT_HOST,
     "it refuses your ssh keys, and dtrun never asks for a password",
     "'ssh-copy-id %s' once, or 'ssh-add' where the key has a passphrase; 'ssh -o BatchMode=yes %s "
     "true' must be silent"},
    {"Could not resolve hostname", DT_ERR_PEER, DT_CONTACT_UNKNOWN, "its name cannot be resolved",
     "check the spelling, or give it a Host entry in ~/.ssh/config"},
    {"Connection refused", DT_ERR_PEER, DT_CONTACT_NONE, "nothing listens on its ssh port",
     "start sshd there, or name the port in ~/.ssh/config"},
    {"No route to host", DT_ERR_PEER, DT_CONTACT_NONE, "no route to host",
     "is it switched on, and on this network?"},
    {"Network is unreachable", DT_ERR_PEER, DT_CONTACT_NONE, "no route to host",
     "is this machine on its network?"},
    {"Unable to negotiate", DT_ERR_UNSUPPORTED, DT_CONTACT_HOST,
     "its sshd and this ssh have no algorithm in common",
     "name one that it offers in ~/.ssh/config (HostKeyAlgorithms, KexAlgorithms), or update it"},
    {"invalid characters", DT_ERR_PEER, DT_CONTACT_HOST,
     "a program other than sshd answers on its ssh port", "name the port in ~/.ssh/config"},
    {"Bad remote protocol version", DT_ERR_PEER, DT_CONTACT_HOST,
     "a program other than sshd answers on its ssh port", "name the port in ~/.ssh/config"},
    {"during banner exchange", DT_ERR_PEER, DT_CONTACT_HOST,
     "it accepts the connection, but its sshd does not answer", "is the machine overloaded?"},
    {"Connection timed out", DT_ERR_PEER, DT_CONTACT_NONE, "it does not answer",
     "is it switched on, and does a firewall let ssh through?"},
    {"Operation timed out", DT_ERR_PEER, DT_CONTACT_NONE, "it does not answer",
     "is it switched on, and does a firewall let ssh through?"},
    {"not responding", DT_ERR_PEER, DT_CONTACT_NONE, "it stopped responding",
     "is it still switched on?"},
    {"Connection closed by", DT_ERR_PEER, DT_CONTACT_HOST, "its sshd closes the connection at once",
     "look at that machine's log ('journalctl -u ssh'): MaxStartups, an expired account, no space"},
    {"Connection reset by", DT_ERR_PEER, DT_CONTACT_HOST, "its sshd closes the connection at once",
     "look at that machine's log ('journalctl -u ssh'): MaxStartups, an expired account, no space"},
    {" closed by remote host.", DT_ERR_PEER, DT_CONTACT_HOST, "its sshd ended the connection",
     "look at that machine's log ('journalctl -u ssh'): a restart, a limit of sessions"},
    {"Received disconnect from", DT_ERR_PEER, DT_CONTACT_HOST, "its sshd ended the connection",
     "look at that machine's log ('journalctl -u ssh')"},
    {"Broken pipe", DT_ERR_PEER, DT_CONTACT_NONE, "the connection was lost", "is the network up?"},
    {"mux_client", DT_ERR_PEER, DT_CONTACT_NONE, "the connection was lost", "try again"},
};

/* Messages of a jump host that cannot connect to the next machine, after "open failed: ". ssh's connection
 * to the jump host itself works. */
static const row channel_rows[] = {
    {"administratively prohibited", DT_ERR_PEER, DT_CONTACT_UNKNOWN,
     "it does not forward connections there",
     "allow it in the jump host's sshd_config: AllowTcpForwarding, PermitOpen"},
    {"Connection refused", DT_ERR_PEER, DT_CONTACT_NONE,
     "it cannot connect there: nothing listens on that port",
     "start sshd there, or name the port in ~/.ssh/config"},
    {"not known", DT_ERR_PEER, DT_CONTACT_UNKNOWN, "it cannot resolve that name",
     "give HostName as the jump host knows it"},
    {"name resolution", DT_ERR_PEER, DT_CONTACT_UNKNOWN, "it cannot resolve that name",
     "is the name server of the jump host up?"},
    {"No address associated", DT_ERR_PEER, DT_CONTACT_UNKNOWN, "it cannot resolve that name",
     "give HostName as the jump host knows it"},
    {"connect failed", DT_ERR_PEER, DT_CONTACT_NONE, "it cannot connect there",
     "is that machine switched on, and on a network of the jump host?"},
    {"", DT_ERR_PEER, DT_CONTACT_UNKNOWN, "it cannot open a connection there",
     "look at the log of the jump host's sshd"},
};

/* --- lines */

typedef struct lines {
    char bytes[COMPLAINT_BYTES];
    const char *line[LINES_MAX];
    int count;
} lines;

/* Splits the end of `complaint` into its lines that are not empty, without control characters. */
static void split(lines *out, const char *complaint)
{
    size_t length = strlen(complaint);
    char *rest = out->bytes, *one;

    if (length >= sizeof(out->bytes))
        complaint += length - (sizeof(out->bytes) - 1);
    snprintf(out->bytes, sizeof(out->bytes), "%s", complaint);
    out->count = 0;
    while ((one = strsep(&rest, "\n")) != NULL) {
        size_t end = strlen(one);

        while (end > 0 && (unsigned char)one[end - 1] <= ' ')
            one[--end] = '\0';
        for (size_t i = 0; i < end; i++)
            if ((unsigned char)one[i] < ' ' || one[i] == 0x7f)
                one[i] = ' ';
        if (end > 0 && out->count < LINES_MAX)
            out->line[out->count++] = one;
    }
}

static bool begins(const char *line, const char *front)
{
    return strncmp(line, front, strlen(front)) == 0;
}

/* Returns true if ssh itself wrote the line: a server's banner and a ProxyCommand can print
 * anything. */
static bool is_own(const char *line)
{
    static const char *const fronts[] = {"ssh: ",
                                         "@",
                                         "Host key verification failed",
                                         "Permission denied (",
                                         "Bad owner or permissions",
                                         "command-line",
                                         "kex_exchange_identification",
                                         "ssh_exchange_identification",
                                         "ssh_dispatch_run_fatal",
                                         "banner exchange",
                                         "Bad remote protocol",
                                         "Unable to negotiate",
                                         "Connection ",
                                         "Received disconnect",
                                         "Disconnected from",
                                         "Disconnecting",
                                         "Timeout, server",
                                         "client_loop",
                                         "packet_write_wait",
                                         "mux_client",
                                         "Too many authentication failures"};

    for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++)
        if (begins(line, fronts[i]))
            return true;
    return strstr(line, ": Permission denied (") != NULL ||
           strstr(line, "onfiguration option") != NULL;
}

/* Returns true for a line that only says that a connection ended. */
static bool is_closing(const char *line)
{
    return begins(line, "kex_exchange_identification: Connection closed") ||
           begins(line, "kex_exchange_identification: read") ||
           begins(line, "ssh_exchange_identification: ") ||
           begins(line, "ssh_dispatch_run_fatal: ") || begins(line, "Connection closed by ") ||
           begins(line, "Connection reset by ") || begins(line, "Disconnected from ") ||
           begins(line, "banner exchange: ") || begins(line, "stdio forwarding failed");
}

static bool is_warning(const char *line)
{
    return begins(line, "Warning: ") || begins(line, "** ") || begins(line, "debug") ||
           begins(line, "Authorized uses only");
}

/* Returns true for ssh's message if the jump host or ProxyCommand that carried its connection ended
 * first. */
static bool is_carrier_lost(const char *line)
{
    return strstr(line, "UNKNOWN port") != NULL;
}

/* --- what a line means */

/* Returns the first row that matches a line of ssh, and sets *line to that line; NULL: none. */
static const row *find_row(const char **line, const lines *all)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int j = all->count - 1; j >= 0; j--)
            if (strstr(all->line[j], rows[i].text) != NULL && is_own(all->line[j])) {
                *line = all->line[j];
                return &rows[i];
            }
    return NULL;
}

/* Returns the last line that explains why the connection ended, else the last line; "" if there is none. */
static const char *find_cause(const lines *all)
{
    for (int i = all->count - 1; i >= 0; i--)
        if (!is_closing(all->line[i]) && !is_carrier_lost(all->line[i]) &&
            !is_warning(all->line[i]))
            return all->line[i];
    return all->count > 0 ? all->line[all->count - 1] : "";
}

/* Removes a leading "ssh: ", for messages that begin with it themselves. */
static const char *without_front(const char *line)
{
    return begins(line, "ssh: ") ? line + 5 : line;
}

static const row *find_channel_row(const char *line)
{
    const char *why = strstr(line, "open failed: ");
    size_t i = 0;

    if (!begins(line, "channel ") || why == NULL)
        return NULL;
    while (strstr(why, channel_rows[i].text) == NULL)
        i++;
    return &channel_rows[i];
}

/* Replaces "%s" in a remedy by the node's name. A remedy has "HOST" where known_hosts may use
 * another name, which only the user's configuration knows. */
static void fill(char *out, size_t size, const char *remedy, const char *node)
{
    size_t used = 0, length = strlen(node);

    for (; *remedy != '\0' && used + length + 1 < size; remedy++)
        if (remedy[0] == '%' && remedy[1] == 's') {
            memcpy(out + used, node, length);
            used += length;
            remedy++;
        } else {
            out[used++] = *remedy;
        }
    out[used] = '\0';
}

/* --- with a jump host */

/* Returns how many ssh processes lost the connection that carried them: the ssh to the node, the
 * one to its last jump host, and so on. 0: the node's own sshd was reached. */
static int count_lost(const lines *all)
{
    int count = 0;

    for (int i = 0; i < all->count; i++)
        count += is_carrier_lost(all->line[i]) && is_closing(all->line[i]);
    for (int i = 0; i < all->count && count == 0; i++)
        count += is_carrier_lost(all->line[i]);
    return count;
}

/* Connects once more to get better messages; keeps the old ones if this try does not fail on the
 * way to the node. */
static void ask_why(lines *all, int *lost, const char *node)
{
    dt_strbuf complaint;
    lines fresh;
    int count;

    dt_strbuf_init(&complaint);
    dt_ssh_ask_why(&complaint, node);
    split(&fresh, complaint.data);
    count = count_lost(&fresh);
    if (count > 0) {
        split(all, complaint.data);
        *lost = count;
    }
    dt_strbuf_release(&complaint);
}

/* Fails with what went wrong on the way to the node, naming the jump host that wrote the cause. */
static dt_status explain_way(const char *node, const lines *all, int lost, dt_error *err)
{
    const char *cause = find_cause(all), *jump, *line;
    const row *found = find_channel_row(cause);
    dt_ssh_way way;
    dt_status st;
    dt_arena arena;
    char remedy[1024], next[300] = "";
    int at;

    dt_arena_init(&arena, 1024);
    dt_ssh_way_find(&way, node, &arena);
    at = way.count - lost;
    jump = at >= 0 && at < way.count ? way.jumps[at] : NULL;
    if (jump != NULL && at + 1 < way.count)
        snprintf(next, sizeof(next), " (to jump host '%.200s')", way.jumps[at + 1]);
    if (is_closing(cause) || is_carrier_lost(cause))
        cause = "it ended without a message";
    if (jump == NULL && found == NULL) {
        st = DT_FAIL(err, DT_ERR_PEER,
                     "node '%s': its ProxyCommand '%.200s' ended before its sshd answered: %s: try "
                     "'ssh %s true'",
                     node, way.command != NULL ? way.command : "of its ssh configuration", cause,
                     node);
    } else if (found != NULL) {
        fill(remedy, sizeof(remedy), found->remedy, node);
        st = DT_FAIL(err, found->status, "node '%s': jump host '%s': %s%s: %s (ssh: %s)", node,
                     jump != NULL ? jump : "of its ProxyCommand", found->what, next, remedy, cause);
    } else if ((found = find_row(&line, all)) != NULL && !is_closing(line)) {
        fill(remedy, sizeof(remedy), found->remedy, jump);
        st = DT_FAIL(err, found->status,
                     "node '%s': jump host '%s' cannot be used: %s: %s (ssh: %s)", node, jump,
                     found->what, remedy, without_front(cause));
    } else {
        st = DT_FAIL(err, DT_ERR_PEER,
                     "node '%s': jump host '%s' closed the connection: look at that machine's log "
                     "('journalctl -u ssh') (ssh: %s)",
                     node, jump, cause);
    }
    dt_arena_release(&arena);
    return st;
}

/* Returns what a failure on the way to the node proves about the node: an error about a jump host
 * only proves that the node could not be reached through it. */
static dt_contact contact_of_way(const lines *all)
{
    const row *found = find_channel_row(find_cause(all));
    const char *line;

    if (found != NULL)
        return found->contact;
    found = find_row(&line, all);
    return found == NULL || is_closing(line) || found->contact == DT_CONTACT_NONE
               ? DT_CONTACT_NONE /* `ping` can correct this: it shares no connection */
               : DT_CONTACT_UNKNOWN;
}

/* --- all of it */

dt_status dt_ssh_error(const char *node, const char *complaint, dt_error *err)
{
    const char *line, *cause;
    char remedy[1024];
    const row *found;
    lines all;
    int lost;

    split(&all, complaint);
    lost = count_lost(&all);
    if (lost > 0) {
        const char *known = find_cause(&all);

        if (is_closing(known) || is_carrier_lost(known))
            ask_why(&all, &lost, node);
        return explain_way(node, &all, lost, err);
    }
    cause = find_cause(&all);
    found = find_row(&line, &all);
    if (found == NULL)
        return DT_FAIL(err, DT_ERR_PEER, "node '%s': ssh: %.300s", node,
                       cause[0] != '\0' ? without_front(cause) : "ended without a message");
    fill(remedy, sizeof(remedy), found->remedy, node);
    return DT_FAIL(err, found->status, "node '%s': %s: %s (ssh: %.300s)", node, found->what, remedy,
                   without_front(is_closing(line) ? cause : line));
}

bool dt_ssh_error_is_refusal(const char *complaint)
{
    lines all;

    split(&all, complaint);
    return count_lost(&all) == 0 && all.count > 0 &&
           (is_closing(find_cause(&all)) ||
            strstr(find_cause(&all), "Not allowed at this time") != NULL);
}

/* The server's banner ("Remote protocol version", of LogLevel DEBUG1, ssh.c) proves that the
 * machine answers, even if it then refuses the login. */
dt_contact dt_ssh_error_contact(const char *complaint)
{
    const row *found;
    const char *line;
    lines all;

    if (strstr(complaint, "Remote protocol version") != NULL)
        return DT_CONTACT_HOST;
    split(&all, complaint);
    if (count_lost(&all) > 0)
        return contact_of_way(&all);
    found = find_row(&line, &all);
    return found != NULL ? found->contact : DT_CONTACT_NONE;
}
