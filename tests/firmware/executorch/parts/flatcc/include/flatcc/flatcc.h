#ifndef FLATCC_H
#define FLATCC_H

#ifdef __cplusplus
extern "C" {
#endif

int flatcc_runtime(void);

#ifdef __cplusplus
}
#endif

#endif
