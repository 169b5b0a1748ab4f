// Package cohort is the mean-field engine: in each time step it moves masses of
// requests, so that its cost does not depend on their number. A fleet of 100
// million requests a second is as quick as one of a hundred.
//
// What a mass cannot show is kept apart from it. Decisions are those of one real
// Retryer for each group, which sees one request for a unit of mass, and whose
// ruling holds for that unit. Waits are the quantiles of the policy's own draws,
// cut into boxes of equal mass. Circuit breakers see single attempts that are
// sampled out of the masses, because a breaker counts attempts and not shares.
//
// The engine fits scenarios of one service whose calls do not depend on each other;
// [Unfit] says why another does not fit. Where chance decides, which masses do not
// know, the record says so in its notes.
package cohort
