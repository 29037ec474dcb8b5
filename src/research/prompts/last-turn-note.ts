// Said to a model in its last permitted turn, in which it is offered no tools.

export const lastTurnNote =
  'This is your last turn, and no tool can be called any more. Write your final message now, from what you have. Say what is missing.';
