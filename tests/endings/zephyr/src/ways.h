#pragma once
/* One way to go wrong each; none returns but those that only print. */
void overflow_the_stack(void);
void fail_an_assertion(void);
void write_to_code(void);
void run_nonsense(void);
void panic(void);
void oops(void);
void interleave(void);
void cut_the_end(void);
void deadlock(void);
void spin(void);
void reset(void);
