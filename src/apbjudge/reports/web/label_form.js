// The form beside an item on the labelling page: what the rubric asks for, as buttons with keys,
// and what the rubric says about it. It decides nothing: a click is handed on, and the state shown
// is the one that the server has saved.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const { node } = apb;

  // One thing that can be said: a button, its key, what a click on it sets (or a function of the
  // label that gives it), and when it counts as pressed.
  // ``meaning`` is what the rubric says of it.
  const choice = (kind, key, click, isOn, label, meaning = "") => {
    const button = node(`button.choice.${kind}`,
      { type: "button", "aria-pressed": "false", ...(key ? apb.keys.shortcut(key) : {}) },
      node("span.label", label), key ? node("kbd", { "aria-hidden": "true" }, key) : null);
    return { button, key, click, isOn, meaning, name: label.map(textOf).join("") };
  };

  const textOf = (part) => (part instanceof Node ? part.textContent : part || "");

  const verdictChoices = () => [
    choice("passes", "c", { set: "correct", to: true }, (label) => label.is_correct === true, ["✓ Correct"]),
    choice("fails", "x", { set: "correct", to: false }, (label) => label.is_correct === false, ["✕ Incorrect"]),
  ];

  const flagChoices = (asks) => asks.criteria.map((criterion, i) =>
    choice("fails", String(i + 1), { set: "flag", to: criterion.code },
      (label) => Boolean((label.errors || {})[criterion.code]),
      [node("b", criterion.code), " ", criterion.name], criterion.definition));

  const gradeChoices = (asks) => asks.grades.map(({ grade, label: name, key, text }) =>
    choice(grade === 1 ? "passes" : "fails", key, { set: "grade", to: grade },
      (label) => label.grade !== null && Math.abs(label.grade - grade) < 1e-6,
      [node("b", grade.toFixed(1)), " ", name], text));

  const categoryChoices = (asks) => asks.categories.map(({ number, name, correct, definition }) =>
    choice(correct ? "passes" : "fails", String(number), { set: "category", to: number },
      (label) => label.category === number,
      [node("b", String(number)), " ", name, node("span.side", correct ? " ✓ correct" : " ✕ incorrect")], definition));

  const unsureChoice = () => choice("unsure", "d", (label) => ({ set: "unsure", to: !label.unsure }),
    (label) => label.unsure, ["Unsure of this label"]);

  // A step of the prediction as something that can be marked; its button stands in the item.
  const stepChoice = (number) => choice("faulty", null, { set: "step", to: number },
    (label) => label.faulty_steps.includes(number), [node("span.unseen", `Step ${number}: `), "faulty"]);

  const groupsOf = (asks) => ({
    flags: () => [
      ["verdict", "Verdict", verdictChoices()],
      ["codes", "What is wrong, if anything", flagChoices(asks)],
      ["grades", "Grade", gradeChoices(asks)],
    ],
    category: () => [["categories", "What it does next", categoryChoices(asks)]],
    pass: () => [["verdict", "Does it decline for the right reason?", verdictChoices()]],
  })[asks.shape]();

  // The rubric -----------------------------------------------------------------------------------

  const list = (texts, kind = "ul") => (texts.length ? node(kind, texts.map((text) => node("li", text))) : null);

  const part = (title, ...inside) => {
    const all = inside.flat().filter(Boolean);
    return all.length ? node("section", node("h3", title), all) : null;
  };

  const criterion = (one) => node("div.criterion",
    node("p", node("b", one.code), " ", node("b", one.name), ": ", one.definition),
    list(one.look_for),
    one.not_this ? node("p.muted", `Not this code: ${one.not_this}`) : null);

  const ruleParts = (rule) => (rule ? [
    part("Why it can't be solved", node("p", rule.situation)),
    part("It passes when", list(rule.passes)),
    part("It fails when", list(rule.fails)),
  ] : []);

  const definitions = (entries) => (entries.length ? node("dl", entries.map(([name, text]) =>
    node("div", node("dt", name), node("dd", text)))) : null);

  const rubric = (asks) => [
    node("p", asks.task),
    ...ruleParts(asks.rule),
    part("How to judge", list(asks.principles)),
    part("Codes", asks.criteria.map(criterion)),
    part("Categories", definitions(asks.categories.map((one) =>
      [`${one.number} ${one.name}`, one.definition]))),
    part("Grades", definitions([...asks.grades].reverse().map((one) =>
      [`${one.grade.toFixed(1)} ${one.label}`, one.text]))),
    node("p.muted.small", `Rubric ${asks.rubric}`),
  ];

  // The form -------------------------------------------------------------------------------------

  const sentence = (label) =>
    (label.missing.length ? `Still to say: ${label.missing.join(" and ")}` : "✓ Complete and saved");

  // Builds the form of one item.
  //   asks: what the rubric asks for; act(choice) is called with every click
  // Gives back {node, rubric, keys: Map of key to choice, show(label)}.
  const labelForm = (asks, act) => {
    const groups = [...groupsOf(asks), ["certainty", "Certainty", [unsureChoice()]]];
    const choices = groups.flatMap(([, , inside]) => inside);
    const state = node("p.state");
    const remark = node("p.remark", { hidden: true });
    // In view beside the buttons: what the rubric says of the one that is looked at, or was pressed last.
    const meaning = node("p.meaning", { tabindex: 0, role: "region", "aria-label": "What the rubric says" });
    const explain = (one) => {
      const name = one && one.meaning ? [node("b", one.name), ": ", one.meaning] : [asks.task];
      meaning.replaceChildren(...name);
      meaning.scrollTop = 0;
    };
    explain();
    for (const one of choices) {
      one.button.addEventListener("click", () => act(one));
      for (const look of ["focus", "pointerenter"]) one.button.addEventListener(look, () => explain(one));
    }
    const isPressed = (one) => one.button.getAttribute("aria-pressed") === "true";
    const show = (label) => {
      const pressed = choices.find((one) => one.meaning && one.isOn(label) && !isPressed(one));
      if (pressed) explain(pressed);
      for (const one of choices) one.button.setAttribute("aria-pressed", String(one.isOn(label)));
      state.textContent = sentence(label);
      state.classList.toggle("complete", !label.missing.length);
      remark.textContent = label.remark ? `! ${label.remark}` : "";
      remark.hidden = !label.remark;
    };
    const fieldsets = groups.map(([kind, title, inside]) =>
      node(`fieldset.${kind}`, node("legend", title), node("div.choices", inside.map((one) => one.button))));
    return {
      node: node("div.form", state, remark, meaning, fieldsets),
      rubric: () => rubric(asks),
      keys: new Map(choices.filter((one) => one.key).map((one) => [one.key, one])),
      show, sentence,
    };
  };

  // Who labels ---------------------------------------------------------------------------------

  // The form that comes before the first item; ``begin`` is called with the name.
  const nameForm = (name, order, begin) => {
    const input = node("input", { id: "name", autocomplete: "off", maxlength: 80, required: true, value: name });
    const form = node("form.sheet.ask",
      node("h2", "Who is labelling?"),
      node("p.muted", "The name stands beside your labels. Under the same name you go on where you stopped; " +
        "others neither see your labels nor change them."),
      node("label", { for: "name" }, "Your name"), input,
      node("button.primary", "Begin"),
      node("p.muted.small", `To label: ${order}.`));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (input.value.trim()) begin(input.value.trim());
    });
    return form;
  };

  Object.assign(apb, { labelForm, nameForm, stepChoice });
})();
