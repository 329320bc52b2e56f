/**
 * How far apart the clocks of two machines may be, in milliseconds: three answers, by what a wrong guess costs. No lease
 * and no guarded write depends on them: a lease ends by a clock of its holder's own, a write goes by its revision.
 */

/** Machines that are well: a longer time would hold up successors, and the report names clocks that are further apart. */
export const CLOCKS_IN_STEP = 5_000;

/** Past this a clock is wrong, and the report says so (`clock_off`). Of two times that are closer, neither is the earlier. */
export const CLOCK_IS_OFF = 60_000;

/** Whatever a clock may show: where too little would remove a document, or accuse somebody, and an hour more costs nothing. */
export const CLOCKS_AT_WORST = 3_600_000;

/** Not about clocks: the writes of one ending (the last settlement, the document's end, a late duplicate) are this close. */
export const ONE_ENDING = 60_000;
