/* Linked with -lnvidia-ml. A success proves that the library exports nvmlInit under its
 * first name. In every release. Needed by: cuda_ipc, and by configure when CUDA is asked
 * for. */
/* Declared by hand: the question is about the library, not about a header. */
char nvmlInit(void);

int main(void)
{
    return nvmlInit();
}
