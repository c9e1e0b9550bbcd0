/* The public header is C++ too. */
#include "runtime/tern.h"
#include "runtime/tern.h"

int main()
{
    return 0;
}
