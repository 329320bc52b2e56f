import type { FindingKind } from "./kind.ts";

/** What can be found of streams, consumers, lanes, generations and agents. */
export const queueFindingKinds = {
  queue_unsafe: {
    severity: "broken",
    nature: "standing",
    of: "setting",
    meaning:
      "A stream or consumer is set so that work can be lost or done twice. The finding says what is, what should be, and what it can cost; all fields are listed below.",
    did: "Nothing: `pawl run` and a deploy correct what NATS can change, and say what it can't.",
    todo: "Run one of them at once, then find out who changed it. What they don't correct: `nats stream edit`, `nats consumer edit`, or drain the queue and set PAWL_GENERATION one higher.",
  },
  queue_differs: {
    severity: "look",
    nature: "standing",
    of: "setting",
    meaning: "A stream or consumer is not set as it should be, in a way that loses nothing.",
    did: "Nothing: `pawl run` and a deploy correct what NATS can change, and say what it can't.",
    todo: "Run one of them, or change the setting that the finding names.",
  },
  queue_unseen: {
    severity: "broken",
    nature: "standing",
    of: "queue",
    meaning: "NATS refuses to say how a queue is, so that its sequences are not explained.",
    did: "Left its mark where it was: the next report explains them.",
    todo: "Do what the finding says: most likely a right is missing.",
  },
  stream_gone: {
    severity: "broken",
    nature: "happened",
    of: "stream",
    meaning:
      "A stream was deleted with messages in it: sequences were open in it and no document settled them, or tasks that are dispatched or running name it.",
    did: "Looked through every document for its sequences. Tasks that name it are orphans: they are dispatched again.",
    todo: "Find out who deleted it. Start the agent once, which makes its queue anew; set PAWL_GENERATION one higher before: a stream under its old name honours acks from its former life.",
  },
  agent_gone: {
    severity: "look",
    nature: "standing",
    of: "agent",
    meaning:
      "Tasks that are not over belong to an agent that this deployment does not have, or cannot load, or that has no queue: nobody will run them.",
    did: "Nothing.",
    todo: "Deploy or run the agent again; or `pawl cancel` its tasks, and resolve those in doubt.",
  },
  lane_left: {
    severity: "look",
    nature: "standing",
    of: "queue",
    meaning: "A lane that its agent no longer has still holds messages.",
    did: "Counted them.",
    todo: "Nothing while the agent's runner or function runs: it drains them. Then delete the stream.",
  },
  generation_ahead: {
    severity: "look",
    nature: "standing",
    of: "queue",
    meaning: "A queue is of a higher generation than PAWL_GENERATION says here; it is empty.",
    did: "Nothing.",
    todo: "Set PAWL_GENERATION to the highest everywhere; or delete the stream, if it was made by mistake.",
  },
  generation_lowered: {
    severity: "broken",
    nature: "standing",
    of: "queue",
    meaning:
      "A queue of a higher generation than PAWL_GENERATION says here holds messages: no runner with this setting takes them.",
    did: "Counted them.",
    todo: "Set PAWL_GENERATION to the highest everywhere, and start the runners again.",
  },
  consumer_gone: {
    severity: "look",
    nature: "standing",
    of: "queue",
    meaning: "A queue has no consumer: nothing of it is delivered.",
    did: "Explained its sequences all the same.",
    todo: "Start its agent, which makes the consumer anew, and find out who deleted it.",
  },
  consumer_paused: {
    severity: "look",
    nature: "standing",
    of: "queue",
    meaning: "A queue's consumer is paused: nothing of it is delivered until the time that the finding says.",
    did: "Nothing.",
    todo: "`nats consumer resume`, unless it was meant.",
  },
  agent_paused: {
    severity: "note",
    nature: "standing",
    of: "agent",
    meaning: "Somebody has paused an agent: nothing new of it begins.",
    did: "Nothing. A task of it that runs and that nobody holds is not named: its next holder waits for the resume.",
    todo: "`pawl resume`, once what it was paused for is over.",
  },
  advisories_gone: {
    severity: "look",
    nature: "standing",
    of: "stream",
    meaning:
      "The stream that keeps what the server says when it gives up on a message does not exist, or was made anew: what was said meanwhile is lost.",
    did: "Nothing: the dispatch function and `pawl run` make it anew.",
    todo: "See whether the dispatch function runs, and look for `stranded` in the next reports.",
  },
  stores_differ: {
    severity: "broken",
    nature: "standing",
    of: "queue",
    meaning:
      "Two deployments with different stores share a namespace: each takes messages whose documents are in the other's store, and makes dead letters of them.",
    did: "Nothing: whoever does not have the store that the stream names refuses to start.",
    todo: "Give one of them another PAWL_NAMESPACE, or correct its PAWL_STORE and GOOGLE_CLOUD_PROJECT.",
  },
} as const satisfies Record<string, FindingKind>;
