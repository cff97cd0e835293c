#define _GNU_SOURCE
#include "runner/transport/ssh_errors.h"

#include <string.h>

#include "base/banned.h"

/* The first row whose text is found counts; %s is the node. OpenSSH 8 and 9 write these texts, and
 * translate none of them. */
static const struct {
    const char *text;
    dt_status status;
    dt_contact contact; /* what it proves */
    const char *what, *remedy;
} rows[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", DT_ERR_UNSUPPORTED, DT_CONTACT_HOST,
     "its host key is another one than it was: the machine was installed anew, or it is not that "
     "machine",
     "ask who runs it; if the new key is right, 'ssh-keygen -R HOST' and connect once by hand"},
    {"REVOKED HOST KEY", DT_ERR_UNSUPPORTED, DT_CONTACT_HOST, "its host key is marked as revoked",
     "ask who runs the machine"},
    {"Host key verification failed", DT_ERR_PEER, DT_CONTACT_HOST, "its host key is not known here",
     "connect once by hand with 'ssh %s' and compare the fingerprint, or add the key to "
     "~/.ssh/known_hosts from a source that you trust"},
    {"Bad owner or permissions", DT_ERR_PEER, DT_CONTACT_UNKNOWN,
     "ssh refuses its own configuration", "'chmod go-w' the file that it names"},
    {"Bad configuration option", DT_ERR_PEER, DT_CONTACT_UNKNOWN,
     "ssh refuses its own configuration", "mend the line of ~/.ssh/config that it names"},
    {"terminating, ", DT_ERR_PEER, DT_CONTACT_UNKNOWN, "ssh refuses its own configuration",
     "mend the line of ~/.ssh/config that it names"},
    {"Too many authentication failures", DT_ERR_PEER, DT_CONTACT_HOST,
     "it saw too many keys before the right one",
     "name the key in ~/.ssh/config: IdentityFile, and IdentitiesOnly yes"},
    {"Permission denied (", DT_ERR_PEER, DT_CONTACT_HOST,
     "it lets nobody in with the keys that are at hand, and dtrun never asks for a password",
     "'ssh-copy-id %s' once, or 'ssh-add' where the key has a passphrase; 'ssh -o BatchMode=yes %s "
     "true' must be silent"},
    {"Could not resolve hostname", DT_ERR_PEER, DT_CONTACT_UNKNOWN, "its name cannot be resolved",
     "check the spelling, or give it a Host entry in ~/.ssh/config"},
    {"Connection refused", DT_ERR_PEER, DT_CONTACT_NONE, "nothing listens on its ssh port",
     "start sshd there, or name the port in ~/.ssh/config"},
    {"No route to host", DT_ERR_PEER, DT_CONTACT_NONE, "the network knows no way to it",
     "is it switched on, and on this network?"},
    {"Network is unreachable", DT_ERR_PEER, DT_CONTACT_NONE, "the network knows no way to it",
     "is this machine on its network?"},
    {"during banner exchange", DT_ERR_PEER, DT_CONTACT_HOST,
     "something answers there, and its sshd says nothing", "is the machine overloaded?"},
    {"Connection timed out", DT_ERR_PEER, DT_CONTACT_NONE, "it does not answer",
     "is it switched on, and does a firewall let ssh through?"},
    {"Operation timed out", DT_ERR_PEER, DT_CONTACT_NONE, "it does not answer",
     "is it switched on, and does a firewall let ssh through?"},
    {"not responding", DT_ERR_PEER, DT_CONTACT_NONE, "it has fallen silent",
     "is it still switched on?"},
    {"Connection closed by", DT_ERR_PEER, DT_CONTACT_HOST, "its sshd closes the connection at once",
     "look at that machine's log ('journalctl -u ssh'): MaxStartups, an expired account, no space"},
    {"Connection reset by", DT_ERR_PEER, DT_CONTACT_HOST, "its sshd closes the connection at once",
     "look at that machine's log ('journalctl -u ssh'): MaxStartups, an expired account, no space"},
    {"Broken pipe", DT_ERR_PEER, DT_CONTACT_NONE, "the connection broke off", "is the network up?"},
    {"mux_client", DT_ERR_PEER, DT_CONTACT_NONE, "the connection broke off", "try again"},
};

/* The last line that says anything, without its end. */
static void last_line(char *out, size_t size, const char *text)
{
    size_t length = strlen(text), start;

    while (length > 0 && (unsigned char)text[length - 1] <= ' ')
        length--;
    for (start = length; start > 0 && text[start - 1] != '\n'; start--)
        ;
    length = length - start < size ? length - start : size - 1;
    memcpy(out, text + start, length);
    out[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)out[i] < ' ' || out[i] == 0x7f)
            out[i] = ' ';
}

/* "HOST" alone in a remedy is known_hosts' name for it, which only the user's configuration knows.
 */
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

dt_status dt_ssh_error(const char *node, const char *complaint, dt_error *err)
{
    char last[300], remedy[1024];

    last_line(last, sizeof(last), complaint);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strstr(complaint, rows[i].text) != NULL) {
            fill(remedy, sizeof(remedy), rows[i].remedy, node);
            return DT_FAIL(err, rows[i].status, "node '%s': %s: %s (ssh: %s)", node, rows[i].what,
                           remedy, last);
        }
    return DT_FAIL(err, DT_ERR_PEER, "node '%s': ssh: %s", node,
                   last[0] != '\0' ? last : "ended without a word");
}

/* The banner comes before any question of who may sign in (DEBUG1, ssh.c). */
dt_contact dt_ssh_error_contact(const char *complaint)
{
    if (strstr(complaint, "Remote protocol version") != NULL)
        return DT_CONTACT_HOST;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strstr(complaint, rows[i].text) != NULL)
            return rows[i].contact;
    return DT_CONTACT_NONE;
}
