// A button that copies a block of code without prompts and without output.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight > pre")) {
    const button = document.createElement("button");
    button.className = "copy-code";
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      const lines = block.textContent.split("\n");
      const prompted = lines.some((line) => line.startsWith(">>> "));
      const code = prompted
        ? lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4))
        : lines;
      await navigator.clipboard.writeText(code.join("\n").trimEnd() + "\n");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.parentElement.classList.add("has-copy");
    block.parentElement.append(button);
  }
});
