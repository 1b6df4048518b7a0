/* SPDX-License-Identifier: MIT */
/*
 * A library that is loaded into any program must load on the oldest C library it may
 * meet, 2.28.  These calls have a newer version since 2.34, which a linker takes if it is
 * not told otherwise; the old one is the same function.
 */
#ifndef GP_BASE_OLD_GLIBC_H
#define GP_BASE_OLD_GLIBC_H

#if defined(GP_OLD_GLIBC) && defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dladdr, dladdr@GLIBC_2.2.5");
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver pthread_attr_setstacksize, pthread_attr_setstacksize@GLIBC_2.2.5");
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_getspecific, pthread_getspecific@GLIBC_2.2.5");
__asm__(".symver pthread_key_create, pthread_key_create@GLIBC_2.2.5");
__asm__(".symver pthread_setspecific, pthread_setspecific@GLIBC_2.2.5");
#endif

#endif
