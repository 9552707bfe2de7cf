// The colours that were chosen on the other pages hold here too: the theme keeps them under the path of the site.
const site = new URL("..", document.currentScript.src).pathname
const chosen = JSON.parse(localStorage.getItem(site + ".__palette"))
const dark = chosen ? chosen.color.scheme === "slate" : matchMedia("(prefers-color-scheme: dark)").matches
document.documentElement.dataset.scheme = dark ? "dark" : "light"
