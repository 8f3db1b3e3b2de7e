/** The regions whose numbers can be read: a test holds this equal to what the nodes know, which is too large to load. */
const codes =
  /^(A[CDEFGILMORSTUWXZ]|B[ABDEFGHIJLMNOQRSTWYZ]|C[ACDFGHIKLMNORUVWXYZ]|D[EJKMOZ]|E[CEGHRST]|F[IJKMOR]|G[ABDEFGHILMNPQRTUWY]|H[KNRTU]|I[DELMNOQRST]|J[EMOP]|K[EGHIMNPRWYZ]|L[ABCIKRSTUVY]|M[ACDEFGHKLMNOPQRSTUVWXYZ]|N[ACEFGILOPRUZ]|OM|P[AEFGHKLMRSTWY]|QA|R[EOSUW]|S[ABCDEGHIJKLMNORSTVXYZ]|T[ACDGHJKLMNORTVWZ]|U[AGSYZ]|V[ACEGINU]|W[FS]|XK|Y[ET]|Z[AMW])$/;

export const isCountry = (code: string): boolean => codes.test(code.toUpperCase());
