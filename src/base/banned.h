/* banned: calls that have a safer name in base/. Included by base/own.h, so using one does not compile.
 * System headers declare them, hence the poison comes after those are included. */
#ifndef SILICA_BASE_BANNED_H
#define SILICA_BASE_BANNED_H

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#undef alloca
#pragma GCC poison alloca strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atoll
#pragma GCC poison strtol gets system popen localtime gmtime ctime asctime

#endif
