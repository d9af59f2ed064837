void copy(char* to, const char* from);

int main(void) {
  char from[16] = "sixteen letters";
  char to[16];
  copy(to, from);
  return to[0] != 's';
}
