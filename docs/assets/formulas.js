// Formulas are rendered by KaTeX, which lies beside this file and is loaded by pages that have some.
const formulas = [...document.querySelectorAll(".arithmatex")]
if (formulas.length) {
  const folder = new URL("katex/", document.currentScript.src)
  const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("katex.min.css", folder) })
  const script = Object.assign(document.createElement("script"), { src: new URL("katex.min.js", folder) })
  script.onload = () => formulas.forEach(element => {
    const text = element.textContent.trim()
    katex.render(text.slice(2, -2), element, { displayMode: text.startsWith("\\["), throwOnError: true })
  })
  document.head.append(style, script)
}
