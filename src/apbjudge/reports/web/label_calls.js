// The labelling page's calls to the local server. They go one after the other, in the order of the
// clicks that they come from.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});

  // A failure that the user is told of in these words.
  class Told extends Error {}

  class Refused extends Told {
    constructor(status, answer) {
      super(`Not done: ${answer.error || `the server answers ${status}`}.`);
      this.status = status;
      this.label = answer.label;
    }
  }

  // The token comes behind # and stays in this tab, out of the address and of the history. Gives
  // back whether there was one.
  const takeToken = (desk) => {
    const found = /^#token=([\w-]+)$/.exec(location.hash);
    if (found) {
      sessionStorage.setItem("apbjudge-token", found[1]);
      history.replaceState(null, "", location.pathname);
    }
    desk.token = sessionStorage.getItem("apbjudge-token") || "";
    return found !== null;
  };

  const call = async (desk, name, said) => {
    const response = await fetch(`/api/${name}`, {
      method: "POST", cache: "no-store", credentials: "omit",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${desk.token}` },
      body: JSON.stringify({ rater: desk.rater, ...said }),
    }).catch(() => {
      throw new Told("Not saved: the server does not answer. Start apbjudge label again and open the address it prints.");
    });
    const answer = await response.json().catch(() => null);
    if (!response.ok) throw new Refused(response.status, answer || {});
    if (!answer) throw new Told("Perhaps not saved: the server's answer was cut off. Do it again.");
    return answer;
  };

  const wordsOf = (error) => {
    if (error instanceof Refused && error.status === 401) {
      return "This tab does not know the server's token. Open the address that apbjudge label has printed.";
    }
    return error instanceof Told ? error.message : `Not done: ${error.message}`;
  };

  // One job at a time. After one that failed, those that were waiting are dropped: they were made
  // from a page that showed something else.
  const inTurn = (desk, job, trouble) => {
    const { failures } = desk;
    const complain = (error) => {
      desk.failures += 1;
      trouble(wordsOf(error));
      if (!(error instanceof Told)) reportError(error); // thrown, it would stop all later jobs too
    };
    desk.unsaved += 1;
    desk.turn = desk.turn.then(() => (failures === desk.failures ? job() : undefined))
      .catch(complain).finally(() => (desk.unsaved -= 1));
    return desk.turn;
  };

  // What a page needs to talk to the server; ``trouble`` is given the words for what goes wrong.
  const makeDesk = (trouble) => {
    const desk = { token: "", rater: "", unsaved: 0, failures: 0, turn: Promise.resolve() };
    return Object.assign(desk, {
      takeToken: () => takeToken(desk),
      call: (name, said = {}) => call(desk, name, said),
      inTurn: (job) => inTurn(desk, job, trouble),
    });
  };

  Object.assign(apb, { makeDesk, Told });
})();
