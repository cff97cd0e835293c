/* banned: makes using a function that has a safer sibling a compile error. CMakeLists.txt includes it in every C file
 * before its first line; the headers that declare the functions come before their names are replaced. */
#ifndef DT_BASE_BANNED_H
#define DT_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DT_BANNED(func) sorry_##func##_is_banned

#undef strcpy
#define strcpy(x, y) DT_BANNED(strcpy) /* snprintf, dt_strbuf */
#undef strcat
#define strcat(x, y) DT_BANNED(strcat)
#undef strncpy
#define strncpy(x, y, n) DT_BANNED(strncpy)
#undef strncat
#define strncat(x, y, n) DT_BANNED(strncat)
#undef strtok
#define strtok(x, y) DT_BANNED(strtok)
#undef sprintf
#define sprintf(...) DT_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) DT_BANNED(vsprintf)
#undef gets
#define gets(x) DT_BANNED(gets)
#undef atoi
#define atoi(x) DT_BANNED(atoi) /* strtoll with an end pointer */
#undef atol
#define atol(x) DT_BANNED(atol)
#undef atof
#define atof(x) DT_BANNED(atof)
#undef gmtime
#define gmtime(t) DT_BANNED(gmtime) /* dt_clock_iso */
#undef localtime
#define localtime(t) DT_BANNED(localtime)
#undef ctime
#define ctime(t) DT_BANNED(ctime)
#undef system
#define system(s) DT_BANNED(system) /* fork and exec an argv */
#undef popen
#define popen(s, m) DT_BANNED(popen)
#undef mktemp
#define mktemp(t) DT_BANNED(mktemp)

#endif
