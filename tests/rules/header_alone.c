/* Compiles only if HEADER needs nothing before it and can be included twice. */
#include HEADER
#include HEADER

int main(void)
{
    return 0;
}
