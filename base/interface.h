/* interface: finds a network interface of this machine by its address. */
#ifndef DT_BASE_INTERFACE_H
#define DT_BASE_INTERFACE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_INTERFACE_SIZE 64

/* Writes the name of the interface with this numeric IPv4 or IPv6 address. Returns false if there is none. */
bool dt_interface_name(char out[DT_INTERFACE_SIZE], const char *address);

#ifdef __cplusplus
}
#endif
#endif
