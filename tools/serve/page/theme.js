/* theme.js: the colours, before anything is painted: those that were chosen, or the system's. */
(function () {
    var dark = matchMedia('(prefers-color-scheme: dark)');
    var chosen = null;
    try {
        chosen = JSON.parse(localStorage.getItem('tern.theme'));
    } catch (e) {
        /* Without storage the system's colours hold. */
    }
    function apply() {
        document.documentElement.dataset.theme =
            chosen === 'light' || chosen === 'dark' ? chosen : dark.matches ? 'dark' : 'light';
        document.dispatchEvent(new Event('themechange'));
    }
    dark.addEventListener('change', apply);
    window.ternTheme = {
        get: function () { return chosen; },
        set: function (name) { chosen = name; apply(); },
    };
    apply();
})();
